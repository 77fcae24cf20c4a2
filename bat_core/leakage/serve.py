"""`bat leakage serve`: the checker of a benchmark's owner behind a Unix socket. The index key stays here.

It speaks the checker's frames: first what the index covers, then an answer with a signed receipt for each request.
Who can connect can ask, so the folder of the socket decides who; how much was asked and by how many is logged.
"""

from __future__ import annotations

import contextlib
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO, cast

from bat_core.errors import LeakageError
from bat_core.leakage.index_file import read_index
from bat_core.leakage.keys import key_of, new_receipt_key
from bat_core.leakage.panel import Panel
from bat_core.leakage.receipts import signed
from bat_core.processes import frames

PER_MINUTE = 600_000
"""Samples that are answered within a minute: a checker that answers everything can be asked for everything."""


class Desk:
    """A panel, its receipt key, and how many samples it may still answer this minute."""

    def __init__(self, panel: Panel, receipt_key: bytes, per_minute: int = PER_MINUTE) -> None:
        self.panel = panel
        self._key = receipt_key
        self._per_minute = per_minute
        self._lock = threading.Lock()
        self._minute, self._asked = 0, 0

    def greeting(self) -> dict[str, Any]:
        """Return what a client may know of the index."""
        return {"covered": self.panel.covered, "refused": self.panel.refused, "index": self.panel.index}

    def answer(self, request: Any) -> dict[str, Any]:
        """Return verdicts on a request's samples, and a receipt."""
        samples = [(str(sample["id"]), sample["value"]) for sample in request["samples"]]
        with self._lock:
            minute = int(time.monotonic() // 60)
            self._asked = self._asked + len(samples) if minute == self._minute else len(samples)
            self._minute = minute
            if self._asked > self._per_minute:
                return {"error": f"more than {self._per_minute} samples within a minute"}
            checked = self.panel.check_all(samples)
        receipt = signed(self._key, request, self.panel.index, checked)
        return {"checked": [one.model_dump(mode="json") for one in checked], "receipt": receipt}


class _Handler(socketserver.StreamRequestHandler):
    """Answers one client until it goes."""

    def handle(self) -> None:
        desk = cast("_Server", self.server).desk
        source, sink = cast(BinaryIO, self.rfile), cast(BinaryIO, self.wfile)
        total = 0
        with contextlib.suppress(OSError, EOFError):
            frames.write(sink, desk.greeting())
            while True:
                try:
                    request = frames.read(source)
                    answer = desk.answer(request)
                except (ValueError, TypeError, KeyError, RecursionError):
                    answer = {"error": "not a request"}
                total += len(answer.get("checked", ()))
                frames.write(sink, answer)
                if "error" in answer:
                    break
        print(f"a client went after {total} samples", file=sys.stderr, flush=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path, desk: Desk) -> None:
        self.desk = desk
        super().__init__(str(path), _Handler)


def serve(index: Path, socket: Path, per_minute: int = PER_MINUTE) -> None:
    """Serve until interrupted.

    Raises:
        LeakageError: The index can't be read or the socket can't be made.
    """
    panel, _ = read_index(index, key_of(index))
    desk = Desk(panel, new_receipt_key(index), per_minute)
    if socket.is_socket():
        socket.unlink()
    try:
        server = _Server(socket, desk)
    except OSError as error:
        raise LeakageError(
            f"can't listen on {socket} ({error})", remedy="choose a short path in a folder of yours"
        ) from error
    socket.chmod(0o660)
    try:
        with server:
            print(f"checking for {panel.index} on {socket}", flush=True)
            server.serve_forever()
    finally:
        socket.unlink(missing_ok=True)
