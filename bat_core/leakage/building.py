"""Building an index file from held-out items and clean samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bat_core import registry
from bat_core.errors import LeakageError
from bat_core.leakage.context import Context
from bat_core.leakage.hashing import Hasher
from bat_core.leakage.heldout_file import read_heldout
from bat_core.leakage.index_file import write_index
from bat_core.leakage.keys import VARIABLE, keep_key, key_file, new_key
from bat_core.leakage.leaves import texts_of
from bat_core.leakage.loading import load_rule
from bat_core.leakage.panel import Panel
from bat_core.leakage.rows import Line, chunks
from bat_core.leakage.strict import loads
from bat_core.model.leakage import HeldoutItem

MOST_CLEAN = 20_000
"""Clean samples that are counted; more say nothing new about what is usual."""
_WEAK = {
    "identifier": "too generic: it needs 8 letters and digits, 16 if there is no digit",
    "path": "too generic: no part of it is telling, or other tasks or clean samples have the same parts",
    "text": "too generic: fewer than 8 words, or none that others don't have",
    "answer": "too generic: name its topic (two words or more), and give two digits or more",
    "trace": "too generic: fewer than 8 words, or none that others don't have",
    "secret": "too weak: a canary needs 12 letters and digits",
}


def build_index(heldout: Path, background: Path | None, output: Path) -> dict[str, Any]:
    """Write an index and its key; return what can be said about it.

    Raises:
        LeakageError: A file can't be read, or no item can be covered.
    """
    items = read_heldout(heldout)
    clean = list(_clean(background)) if background is not None else []
    if not output.parent.is_dir():
        raise LeakageError(f"there is no folder {output.parent}", remedy="make it first")
    rules = [found.target for found in registry.installed("leakage_rules")]
    key = new_key()
    panel = Panel([load_rule(spec) for spec in rules], items, Context(hasher=Hasher(key), clean=clean))
    keep_key(output, key)
    write_index(output, panel, rules, key, {"items": len(items), "background": len(clean)})
    return {
        "items": len(items),
        "bytes": output.stat().st_size,
        "index": panel.index,
        "covered": panel.covered,
        "refused": [_weak(item) for item in panel.weak],
        "background": len(clean),
        "key": str(key_file(output)) if key_file(output).exists() else VARIABLE,
    }


def _weak(item: HeldoutItem) -> dict[str, str]:
    return {"item_id": item.item_id, "kind": item.label or item.kind, "reason": _WEAK[item.kind]}


def _clean(path: Path) -> Iterator[list[str]]:
    """Yield the texts of clean samples."""
    count = 0
    for chunk in chunks(path):
        for line in chunk:
            if count >= MOST_CLEAN:
                return
            yield _texts(line, path)
            count += 1


def _texts(line: Line, path: Path) -> list[str]:
    try:
        return texts_of(loads(line.data or b""))
    except (ValueError, RecursionError) as error:
        raise LeakageError(
            f"{path}, line {line.number}: not a clean JSON sample ({type(error).__name__})", remedy="mend or remove it"
        ) from error
