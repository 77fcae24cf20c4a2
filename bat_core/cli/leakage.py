"""`bat leakage index|check|audit|serve`: the preflight for files, on the side of a benchmark's owner."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from bat_core.cli.options import JsonOption

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

IndexOption = Annotated[Path, typer.Option("--index", help="Index file; its key is in FILE.key or BAT_LEAKAGE_KEY.")]


@app.command()
def index(
    heldout: Annotated[Path, typer.Argument(help="Held-out items: item_id, task, kind, text.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Index file to write; its key goes to FILE.key.")],
    background: Annotated[
        Path | None, typer.Option("--background", help="Clean samples, one a line: what is usual and no leak.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write keyed fingerprints of held-out items; print how many items each rule covers and which are too weak."""
    from bat_core.leakage.building import build_index

    said = build_index(heldout, background, output)
    if as_json:
        print(json.dumps(said))
        return
    print(f"{output}: {said['items']} items, {said['bytes']} bytes, {said['index']}")
    for rule, count in said["covered"].items():
        print(f"  {rule:<12} covers {count} items")
    if said["background"]:
        print(f"  background: {said['background']} clean samples")
    else:
        print("  no background: give --background CLEAN.jsonl, else what is usual in your samples looks telling")
    for weak in said["refused"]:
        print(f"  refused {weak['item_id']} ({weak['kind']}): {weak['reason']}")
    print(f"  key: {said['key']}; keep it with the benchmark's owner")


@app.command()
def check(
    samples: Annotated[Path, typer.Argument(help="Samples, one JSON object a line, each with an id.")],
    index: IndexOption,
    as_json: JsonOption = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes.")] = 1,
) -> None:
    """Check samples. Exit code 1 if any is not a pass. With the key in hand this gives no confidentiality."""
    from bat_core.leakage.bulk import check_file

    counts = check_file(samples, index, workers, sys.stdout if as_json else None, _show)
    if not as_json:
        print(f"{sum(counts.values())} samples: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
        print("confidentiality: none (the key is in the hands of whoever checks)")
    if counts["review"] or counts["block"]:
        raise typer.Exit(1)


@app.command()
def serve(
    index: IndexOption,
    socket: Annotated[Path, typer.Option("--socket", help="Unix socket to listen on; its folder decides who may ask.")],
    per_minute: Annotated[int, typer.Option("--per-minute", min=1, help="Samples answered within a minute.")] = 600_000,
) -> None:
    """Check samples for a trainer that has no key. Receipts are signed with the key in FILE.receipt."""
    from bat_core.leakage.serve import serve as run

    run(index, socket, per_minute)


@app.command()
def audit(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    index: IndexOption,
    embeddings: Annotated[
        Path | None, typer.Option("--embeddings", help="Folder of an encoder model: adds a comparison by meaning.")
    ] = None,
    heldout: Annotated[
        Path | None, typer.Option("--heldout", help="Held-out items, for the comparison by meaning.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what a run was trained on, on the evaluator's side. Exit code 1 if anything is not a pass."""
    from bat_core.evolve.audit import audit_run

    said = audit_run(run, index, heldout, embeddings)
    if as_json:
        print(json.dumps(said))
    else:
        for row in said["samples"]:
            _show(json.dumps(row))
        for row in said["alike"]:
            print(f"{row['id']}: review by meaning: {row['likeness']:.2f} like {row['item_id']}")
        print(f"{run}: " + ", ".join(f"{count} {name}" for name, count in said["looked_at"].items()))
        print(", ".join(f"{count} {name}" for name, count in said["counts"].items()))
        for row in said["overrides"]:
            print(f"overridden: {row}")
    if said["counts"]["review"] or said["counts"]["block"] or said["alike"]:
        raise typer.Exit(1)


def _show(row: str) -> None:
    """Print what is not a pass, a line for each finding."""
    checked = json.loads(row)
    for finding in checked["findings"]:
        where = f"{finding['path']} {finding['start']}-{finding['end']}"
        kind = finding["kind"] or "-"
        print(f"{checked['id']}: {finding['severity']} by {finding['rule']} ({kind}) at {where}: {finding['reason']}")
