"""The checker process: it alone holds the held-out side. `python -m bat_core.leakage.checker`.

Frames come in on stdin and go out on stdout. The first names rules, and a source that is called here and returns
the held-out items, so that they never enter the process that trains. Then each request is a batch of samples.
What rules or sources print goes to stderr. The process ends with its stdin or with its parent.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from bat_core.errors import BatError, LeakageError
from bat_core.leakage.loading import load, load_rule
from bat_core.leakage.panel import Panel
from bat_core.leakage.receipts import signed
from bat_core.model.leakage import HeldoutItem
from bat_core.processes import frames
from bat_core.processes.serving import served


def serve(source: BinaryIO, sink: BinaryIO) -> int:
    """Answer frames until `source` ends; return the exit status."""
    try:
        opening = frames.read(source)
        panel = _prepared(opening)
        receipt_key = bytes.fromhex(opening["receipt_key"])
    except EOFError:
        return 0
    except Exception as error:  # noqa: BLE001  # boundary: without an index nothing may be cleared
        frames.write(sink, {"error": _said(error)})
        return 1
    frames.write(sink, {"covered": panel.covered, "refused": panel.refused, "index": panel.index})
    while True:
        try:
            request = frames.read(source)
        except EOFError:
            return 0
        checked = panel.check_all([(sample["id"], sample["value"]) for sample in request["samples"]])
        receipt = signed(receipt_key, request, panel.index, checked)
        frames.write(sink, {"checked": [one.model_dump(mode="json") for one in checked], "receipt": receipt})


def _prepared(opening: dict[str, Any]) -> Panel:
    rules = [load_rule(spec) for spec in opening["rules"]]
    produce: Callable[..., list[HeldoutItem]] = load(opening["source"])
    heldout = list(produce(**opening.get("arguments", {})))
    if not all(isinstance(item, HeldoutItem) for item in heldout):
        raise LeakageError(f"source {opening['source']} returned something else", remedy="return HeldoutItem values")
    return Panel(rules, heldout)


def _said(error: Exception) -> str:
    """Return what may be said of an error: messages of others may quote held-out text."""
    return str(error) if isinstance(error, BatError) else f"the checker could not start: {type(error).__name__}"


if __name__ == "__main__":
    sys.exit(served(serve))
