"""A bank for people: tables of cells, empty ones, rejections and a few examples."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bat_core.bank.examples import examples
from bat_core.bank.store import Bank
from bat_core.model.base import JsonObject

EXAMPLES = 4
LONGEST = 100


def print_bank(bank: Bank, rejections: Sequence[JsonObject]) -> None:
    """Print everything to standard output."""
    report, console = bank.report, Console()
    of = f" of {report.asked}" if report.asked else ""
    console.print(f"{report.tasks}{of} tasks, {report.states} states, {report.slices} slices, {report.digest}")
    distinct = "" if report.distinct is None else f", {report.distinct:.1%} of the prompts distinct"
    console.print(f"generation {report.generation}, {report.duplicates} near-copies left out{distinct}")
    cells = [(*cell.split("/"), str(count)) for cell, count in report.cells.items()]
    console.print(_table(("focus", "track", "stratum", "states"), cells))
    if report.e2e:
        console.print(_table(("whole tasks", "states"), [(name, str(n)) for name, n in report.e2e.items()]))
    if report.missing:
        console.print(_table(("empty cell", "why"), list(report.missing.items())))
    refused = [
        (row["phase"], row["rule"], row["kind"], row["path"], f"{row['start']}-{row['end']}", row["reason"])
        for row in rejections
    ]
    head = ("phase", "rule", "kind", "path", "offsets", "reason")
    console.print(_table(head, refused) if refused else "nothing was rejected")
    for one in examples(bank, EXAMPLES):
        console.print(escape(one.title))
        for role, text in one.turns[-2:]:
            console.print(f"  {role}: {escape(' '.join(text.split())[:LONGEST])}")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(*head)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    return table
