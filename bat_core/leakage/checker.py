"""The checker process: it alone holds the held-out side. `python -m bat_core.leakage.checker`.

Frames come in on stdin and go out on stdout. The first names rules, and a source that is called here and returns
the held-out items, so that they never enter the process that trains. Then each request is a batch of samples.
What rules or sources print goes to stderr. The process ends with its stdin or with its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from bat_core.errors import BatError, LeakageError
from bat_core.leakage import frames
from bat_core.leakage.loading import load, load_rule
from bat_core.leakage.panel import Panel
from bat_core.leakage.receipts import signed
from bat_core.model.leakage import HeldoutItem

_PR_SET_PDEATHSIG = 1


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


def _die_with_parent() -> None:
    """End when the parent does, even if a copy of our stdin lives on in another process.

    The kernel also sends the signal when only the thread that started us ends; then the parent is still there.
    """
    parent = os.getppid()

    def on_signal(number: int, frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGUSR1, on_signal)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGUSR1))


def main() -> int:
    """Serve on stdin and stdout; stray prints go to stderr."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(0), "rb") as source, os.fdopen(os.dup(1), "wb") as sink:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        return serve(source, sink)


if __name__ == "__main__":
    sys.exit(main())
