"""Options that several commands share, and how they become a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bat_core.config.load import Resolved, file_layer, override_layer, preset_layer, resolve

DomainOption = Annotated[str, typer.Option("--domain", help="Domain plugin.")]
PresetOption = Annotated[str, typer.Option("--preset", help="cpu or gpu.")]
FileOption = Annotated[Path | None, typer.Option("--config", help="YAML file with settings.")]
RunOption = Annotated[Path, typer.Option("--run", help="Run directory.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="key=value settings, such as train.steps=4.")]


def configuration(domain: str, preset: str, file: Path | None, overrides: list[str] | None) -> Resolved:
    """Merge preset, domain defaults, file and overrides, in this order.

    A preset or domain that the file or an override names replaces the one that the option named, so that a saved
    configuration means the same wherever it is read.

    Raises:
        ConfigError, PluginError: For an unknown preset, key or domain.
    """
    from bat_core.config.load import Layer
    from bat_core.registry import load_domain

    own = [file_layer(file)] if file is not None else []
    if overrides:
        own.append(override_layer(overrides))
    for layer in own:
        preset = str(layer.values.get("preset", preset))
        domain = str(layer.values.get("domain", domain))
    defaults = Layer(f"domain {domain}", {**load_domain(domain).defaults(), "domain": domain})
    return resolve([preset_layer(preset), defaults, *own])
