"""`bat evolve`: the main job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bat_core.cli.options import DomainOption, FileOption, JsonOption, Overrides, PresetOption, RunOption, configuration


def evolve(
    overrides: Overrides = None,
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
    run: RunOption = Path("runs/demo"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and the work to expect.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build a bank, train on the weakest stage, evaluate, decide; go on where the run stopped."""
    resolved = configuration(domain, preset, config, overrides)
    if dry_run:
        _print_plan(resolved.config.domain, resolved, as_json)
        return
    from bat_core.cli.display import Display
    from bat_core.evolve.directory import RunDirectory
    from bat_core.evolve.loop import Evolution, config_file
    from bat_core.report.page import write_page

    with RunDirectory(run) as directory, Display() as display:
        evolution = Evolution(resolved, directory, display.progress, display.announce)
        config_file(resolved, run / "config.yaml")
        summary = evolution.run()
        page = write_page(run)
        display.summary(summary, page)
    if as_json:
        print(json.dumps(summary.model_dump(mode="json")))


def _print_plan(domain: str, resolved: object, as_json: bool) -> None:
    from bat_core.cli.display import print_plan
    from bat_core.config.load import Resolved
    from bat_core.evolve.plan import plan
    from bat_core.registry import load_domain

    assert isinstance(resolved, Resolved)
    contract = load_domain(domain).contract()
    expected = plan(resolved.config, len(contract.stages()), len(contract.tracks()))
    if as_json:
        print(json.dumps(expected))
    else:
        print_plan(resolved.config, expected)
