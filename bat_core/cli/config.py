"""`bat config show|schema`."""

from __future__ import annotations

import json

import typer

from bat_core.cli.options import DomainOption, FileOption, JsonOption, Overrides, PresetOption, configuration

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.command()
def show(
    overrides: Overrides = None,
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the resolved configuration with the origin of each value."""
    from bat_core.config.show import as_yaml

    resolved = configuration(domain, preset, config, overrides)
    if as_json:
        print(json.dumps({"config": resolved.config.model_dump(mode="json"), "origins": dict(resolved.origins)}))
    else:
        print(as_yaml(resolved), end="")


@app.command()
def schema() -> None:
    """Print the JSON schema of the configuration."""
    from bat_core.config.schema import Config

    print(json.dumps(Config.model_json_schema(), indent=1))
