"""`bat bank build|show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bat_core.cli.options import DomainOption, FileOption, JsonOption, Overrides, PresetOption, RunOption, configuration

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.command()
def build(
    overrides: Overrides = None,
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
    run: RunOption = Path("runs/bank"),
    tasks: Annotated[Path | None, typer.Option("--tasks", help="JSONL of tasks instead of the synthesizer's.")] = None,
    write_tasks: Annotated[Path | None, typer.Option("--write-tasks", help="Only write the tasks as JSONL.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a Stage Bank in RUN/bank; what was solved there before is not solved again."""
    from bat_core.bank.builder import Builder, read_tasks
    from bat_core.bank.plan import make_tasks, requests
    from bat_core.cli.display import Display
    from bat_core.evolve.directory import RunDirectory
    from bat_core.evolve.preflight import open_preflight, overrides_of
    from bat_core.evolve.settings import lab_spec, seed_of
    from bat_core.executors import LocalExecutor
    from bat_core.registry import load, load_domain

    settings = configuration(domain, preset, config, overrides).config
    plugin = load_domain(settings.domain)
    if tasks is not None:
        wanted = read_tasks(tasks)
    else:
        synthesizer = load("synthesizers", settings.bank.synthesizer)(plugin)
        wanted = make_tasks(synthesizer, requests(plugin.contract(), settings.bank.tasks, seed_of(settings, "bank")))
    if write_tasks is not None:
        write_tasks.write_text("".join(task.model_dump_json() + "\n" for task in wanted))
        return
    executor = LocalExecutor(settings.bank.workers)
    with RunDirectory(run) as directory, Display() as display:
        try:
            with open_preflight(settings, directory) as preflight:
                progress = lambda done, total: display.progress("bank", done, total, {})  # noqa: E731
                builder = Builder(directory.bank, lab_spec(settings, directory), executor, preflight, progress)
                builder.overrides = overrides_of(settings)
                report = builder.build(plugin.contract(), wanted)
        finally:
            executor.close()
        display.announce(f"bank: nothing to do, {directory.bank} is complete" if builder.found else "bank", report)
    if as_json:
        print(report.model_dump_json())


@app.command()
def show(
    run: Annotated[Path, typer.Argument(help="Run directory.")] = Path("runs/demo"), as_json: JsonOption = False
) -> None:
    """Print counts by cell and why samples were rejected."""
    from bat_core.bank.store import read, read_rejections

    bank = read(run / "bank")
    rejections = read_rejections(run / "bank")
    if as_json:
        print(json.dumps({"report": bank.report.model_dump(mode="json"), "rejections": rejections}))
        return
    from rich.console import Console
    from rich.table import Table

    report = bank.report
    console = Console()
    console.print(f"{report.tasks} tasks, {report.states} states, {report.slices} slices, {report.digest}")
    table = Table("focus", "track", "stratum", "states")
    for cell, count in report.cells.items():
        table.add_row(*cell.split("/"), str(count))
    console.print(table)
    refused = Table("phase", "rule", "kind", "path", "offsets", "reason")
    for row in rejections:
        refused.add_row(
            row["phase"], row["rule"], row["kind"], row["path"], f"{row['start']}-{row['end']}", row["reason"]
        )
    console.print(refused if rejections else "nothing was rejected")
