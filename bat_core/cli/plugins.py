"""`bat plugins list`."""

from __future__ import annotations

import json
from typing import Any

import typer

from bat_core.cli.options import JsonOption

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """List installed plugins."""


@app.command("list")
def list_plugins(as_json: JsonOption = False) -> None:
    """Print name, kind, distribution, version and state of every plugin; a broken one with its reason."""
    from bat_core.registry import KINDS, installed

    rows = [_row(found) for kind in KINDS for found in installed(kind)]
    taken = {
        (r["kind"], r["name"]) for r in rows if sum((o["kind"], o["name"]) == (r["kind"], r["name"]) for o in rows) > 1
    }
    for row in rows:
        if row["state"] == "ok" and (row["kind"], row["name"]) in taken:
            row["state"] = "ambiguous"
    if as_json:
        print(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for column in ("kind", "name", "distribution", "version", "state"):
        table.add_column(column)
    for row in rows:
        style = "red" if row["state"] != "ok" else None
        table.add_row(
            *(str(row[c]) for c in ("kind", "name", "distribution", "version")),
            f"{row['state']} {row['reason']}".strip(),
            style=style,
        )
    Console(soft_wrap=True).print(table)


def _row(found: Any) -> dict[str, str]:
    from bat_core.errors import PluginError
    from bat_core.registry import load

    state, reason = "ok", ""
    try:
        load(found.kind, found.qualified)
    except PluginError as error:
        state, reason = "broken", str(error.__cause__ or error)
    return {
        "kind": found.kind,
        "name": found.name,
        "distribution": found.distribution,
        "version": found.version,
        "target": found.target,
        "state": state,
        "reason": reason,
    }
