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

    Raises:
        ConfigError, PluginError: For an unknown preset, key or domain.
    """
    from bat_core.config.load import Layer
    from bat_core.registry import load_domain

    first = preset_layer(preset)
    defaults = Layer(f"domain {domain}", {**load_domain(domain).defaults(), "domain": domain})
    layers = [first, defaults]
    if file is not None:
        layers.append(file_layer(file))
    if overrides:
        layers.append(override_layer(overrides))
    return resolve(layers)
