"""`bat bank build|show|check|copy|slices`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bat_core.cli.options import DomainOption, FileOption, JsonOption, Overrides, PresetOption, RunOption, configuration

if TYPE_CHECKING:
    from bat_core.config.schema import Config

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
WHERE = "Run directory, or a bank's folder or URL."


@app.command()
def build(
    overrides: Overrides = None,
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
    run: RunOption = Path("runs/bank"),
    tasks: Annotated[Path | None, typer.Option("--tasks", help="JSONL of tasks instead of the synthesizer's.")] = None,
    write_tasks: Annotated[Path | None, typer.Option("--write-tasks", help="Only write the tasks as JSONL.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Add bank.tasks further tasks as a new generation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build a Stage Bank in RUN/bank; what was solved there before is not solved again."""
    from bat_core.bank.given import read_tasks
    from bat_core.bank.store import report_of
    from bat_core.cli.display import Display
    from bat_core.evolve import generations
    from bat_core.evolve.directory import RunDirectory
    from bat_core.evolve.loop import config_file
    from bat_core.registry import load_domain

    resolved = configuration(domain, preset, config, overrides)
    settings = resolved.config
    plugin = load_domain(settings.domain)
    before = report_of(run / "bank") if append else None
    if tasks is not None:
        wanted = read_tasks(tasks)
    else:
        wanted = generations.synthesized(settings, plugin, settings.bank.tasks, before.asked if before else 0)
    if write_tasks is not None:
        write_tasks.write_text("".join(task.model_dump_json() + "\n" for task in wanted))
        return
    number = before.generation + 1 if before else 1
    with RunDirectory(run) as directory, Display() as display:
        if not (run / "config.yaml").exists():
            config_file(resolved, run / "config.yaml")
        progress = lambda done, total: display.progress("bank", done, total, {})  # noqa: E731
        report, found = generations.build(settings, directory, plugin, wanted, progress, number)
        display.announce(f"bank: nothing to do, {directory.bank} is complete" if found else "bank", report)
    if as_json:
        print(report.model_dump_json())


@app.command()
def show(
    run: Annotated[str, typer.Argument(help=WHERE)] = "runs/demo",
    html: Annotated[Path | None, typer.Option("--page", help="Write a page with examples there.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print counts by cell, empty cells with their reason, and why samples were rejected."""
    from bat_core.bank.examples import examples
    from bat_core.bank.page import page
    from bat_core.bank.store import read, read_rejections

    where = _bank(run)
    bank = read(where)
    rejections = read_rejections(where)
    if html is not None:
        html.write_text(page(run, bank.report, rejections, examples(bank)), encoding="utf-8")
    if as_json:
        print(json.dumps({"report": bank.report.model_dump(mode="json"), "rejections": rejections}))
        return
    from bat_core.cli.bank_tables import print_bank

    print_bank(bank, rejections)


@app.command()
def check(
    run: Annotated[str, typer.Argument(help=WHERE)] = "runs/demo",
    overrides: Overrides = None,
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
    full: Annotated[bool, typer.Option("--full", help="Every cell must be filled, asked for or not.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify digests, schema, workspaces, balance and leaks. Exit 1 with findings, 0 when clean."""
    from bat_core.bank.check import check as findings
    from bat_core.registry import load_domain

    saved = Path(run) / "config.yaml"
    settings = configuration(domain, preset, config or (saved if saved.is_file() else None), overrides).config
    key = Path(run) / "key"
    with _preflight(settings) as preflight:
        known = key.read_bytes() if key.is_file() else None
        found = findings(_bank(run), load_domain(settings.domain), preflight, known, full=full)
    if as_json:
        print(json.dumps({"findings": [vars(one) for one in found]}))
    else:
        print("\n".join(f"{one.kind} {one.where}: {one.what}" for one in found) or "nothing wrong")
    if found:
        raise SystemExit(1)


@app.command()
def copy(
    source: Annotated[str, typer.Argument(help=WHERE)],
    target: Annotated[str, typer.Argument(help="Folder or URL; what is there already is not copied again.")],
) -> None:
    """Copy a bank with its workspaces to any storage that fsspec reaches, or back, verifying all of it."""
    from bat_core.bank.blobs import copy as copied
    from bat_core.cli.display import Display

    with Display() as display:
        report = copied(_bank(source), target, lambda done, total: display.progress("copy", done, total, {}))
        display.announce("copied", report)


@app.command()
def slices(
    run: Annotated[str, typer.Argument(help=WHERE)],
    policy: Annotated[Path, typer.Option("--policy", help="Folder whose tokenizer and chat template are used.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for train, validation and rejected rows.")],
    max_tokens: Annotated[int, typer.Option(help="Longer slices are rejected, never clipped.")] = 8192,
    validation: Annotated[float, typer.Option(help="Share of trajectories kept for validation.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write the cold start's examples as token ids and labels, for any trainer."""
    from bat_core.bank.supervised import export

    made = export(_bank(run), policy, output, max_tokens, validation, seed)
    if as_json:
        print(json.dumps(made))
    else:
        print(f"{made['train']} for training, {made['validation']} for validation, {made['rejected']} rejected")


def _bank(where: str) -> str:
    """Return the bank that a run directory holds, or that the words name themselves."""
    inside = Path(where) / "bank"
    return str(inside) if "://" not in where and inside.is_dir() else where


def _preflight(settings: Config) -> Any:
    """Return the leakage preflight of a scratch run: a reader changes nothing in the run that it reads."""
    import tempfile
    from contextlib import contextmanager

    from bat_core.evolve.directory import RunDirectory
    from bat_core.evolve.preflight import open_preflight

    @contextmanager
    def opened() -> Any:
        with (
            tempfile.TemporaryDirectory() as folder,
            RunDirectory(Path(folder)) as scratch,
            open_preflight(settings, scratch) as preflight,
        ):
            yield preflight

    return opened()
