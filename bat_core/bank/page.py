"""What a bank holds, as one self-contained page; every text in it is escaped and capped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bat_core.bank.examples import Example
from bat_core.model.base import JsonObject
from bat_core.model.run import BankReport

LONGEST = 1500
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;"
    "text-align:left;vertical-align:top}td.n{text-align:right}pre{white-space:pre-wrap;background:#f6f6f6;padding:.6rem}"
)


def page(name: str, report: BankReport, rejections: Sequence[JsonObject], examples: Sequence[Example]) -> str:
    """Return the page as HTML."""
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(name)}</title><style>{STYLE}</style>"
    distinct = "" if report.distinct is None else f", {report.distinct:.1%} of the prompts distinct"
    said = (
        f"{report.tasks} of {report.asked or report.tasks} tasks, {report.states} states, {report.slices} slices,"
        f" generation {report.generation}; {report.duplicates} near-copies left out{distinct}."
    )
    cells = [[*cell.split("/"), str(count)] for cell, count in report.cells.items()]
    refused = [
        [row["phase"], row["rule"], row["cell"] or row["kind"], row["path"], row["reason"]] for row in rejections
    ]
    parts = [
        f"<h1>Stage Bank</h1><p>{escape(said)}<br><code>{escape(report.digest)}</code></p>",
        "<h2>States</h2>" + _table(("focus", "track", "stratum", "states"), cells),
        "<h2>Empty cells</h2>" + _table(("cell", "why"), [list(pair) for pair in report.missing.items()]),
        "<h2>Whole tasks, by where the fault lies</h2>"
        + _table(("track / fault", "states"), [[name, str(count)] for name, count in report.e2e.items()]),
        "<h2>Rejected</h2>" + _table(("phase", "rule", "cell or kind", "path", "reason"), refused),
        "<h2>Examples</h2>" + "".join(_example(one) for one in examples),
    ]
    return head + "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return "<p>none</p>"
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell)[:LONGEST])}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"


def _example(one: Example) -> str:
    turns = "".join(f"<pre><b>{escape(role)}</b> {escape(text[:LONGEST])}</pre>" for role, text in one.turns)
    return f"<details><summary>{escape(one.title)}</summary>{turns}</details>"
