"""The trainer's side of `bat leakage serve`: the same questions, over a Unix socket; each answer needs its receipt."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Self

from bat_core.errors import LeakageError
from bat_core.leakage.client import Preflight
from bat_core.processes import frames

_REMEDY = "nothing was cleared; is `bat leakage serve` running, and may you use its socket?"


class RemotePreflight(Preflight):
    """A preflight by a checker that someone else runs. Use as a context manager.

    Args:
        path: Its socket.
        receipt_key: The key of its receipts, which its owner gives to the trainer.
        timeout: Seconds to wait for any one answer.
    """

    def __init__(self, path: Path, receipt_key: bytes, timeout: float = 300.0) -> None:
        super().__init__("", timeout=timeout)
        self._path = path
        self._receipt_key = receipt_key
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        """Connect, and read what the index covers."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self._timeout)
        try:
            connection.connect(str(self._path))
            self._socket = connection
            self._greeted(self._received())
        except OSError as error:
            connection.close()
            raise LeakageError(f"no leakage checker at {self._path} ({error})", remedy=_REMEDY) from error
        return self

    def _ask(self, frame: bytes) -> Any:
        if self._socket is None:
            raise LeakageError("the leakage checker is not connected", remedy="use it as a context manager")
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._failed(f"the leakage checker failed ({type(error).__name__})") from error
        return self._received()

    def _received(self) -> Any:
        try:
            header = self._exactly(frames.HEADER)
            answer = json.loads(self._exactly(frames.body_length(header)))
        except (OSError, EOFError, ValueError) as error:
            raise self._failed(f"the leakage checker failed ({type(error).__name__})") from error
        if not isinstance(answer, dict) or "error" in answer:
            raise self._failed("the leakage checker refused")
        return answer

    def _exactly(self, count: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(min(1 << 16, count - len(data)))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _kill(self) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. Idempotent."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()
