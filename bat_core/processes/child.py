"""The parent's side: a module of ours in a process of its own, asked in frames, within a time limit."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from bat_core.processes import frames

INHERITED = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "BAT_PLUGINS",
    "DOCKER_HOST",
)  # fmt: skip
"""The variables of ours that a child gets; secrets in others stay here."""
_PATIENCE = 5.0
"""Seconds that a child has to end once its stdin has."""
_CHUNK = 1 << 16


class Child:
    """A running child process.

    Args:
        module: What it runs, as `python -m MODULE`; see `bat_core.processes.serving`.
        log: File for what it prints.
        environment: Variables that it gets besides the inherited ones.
        python: Its interpreter.

    Raises:
        OSError: It can't be started.
    """

    def __init__(
        self, module: str, log: Path, environment: Mapping[str, str] | None = None, python: str = sys.executable
    ) -> None:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [python, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                env={**inherited, **(environment or {})},
            )
        self.pid = self._process.pid
        self._pipes: tuple[IO[bytes], IO[bytes]] = (_there(self._process.stdin), _there(self._process.stdout))

    def ask(self, frame: bytes, timeout: float | None = None, limit: int = frames.LIMIT) -> Any:
        """Send a frame and return the value of the next one that comes back; an empty one only waits for it.

        Raises:
            EOFError: The child closed its end, or we did.
            OSError: It is gone, or (`TimeoutError`) it took longer than `timeout` seconds.
            ValueError: It answered something that isn't exactly one frame of at most `limit` bytes.
        """
        if any(pipe.closed for pipe in self._pipes):
            raise EOFError
        writer, reader = (pipe.fileno() for pipe in self._pipes)
        received, outgoing = bytearray(), memoryview(frame)
        deadline = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(reader, selectors.EVENT_READ)
            if outgoing:
                selector.register(writer, selectors.EVENT_WRITE)
                os.set_blocking(writer, False)
            while (missing := _missing(received, limit)) or outgoing:
                ready = selector.select(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if key.fd == writer:
                        outgoing = outgoing[os.write(writer, outgoing[:_CHUNK]) :]
                        if not outgoing:
                            selector.unregister(writer)
                    elif data := os.read(reader, min(_CHUNK, max(missing, 1))):
                        received += data
                    else:
                        raise EOFError
        return json.loads(bytes(received[frames.HEADER :]))

    def kill(self) -> None:
        """End it at once. Idempotent."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End its stdin, wait for it to end, and kill it if it doesn't. Idempotent."""
        for pipe in self._pipes:
            pipe.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "we asked for it"
    return pipe


def _missing(received: bytearray, limit: int) -> int:
    """Return how many bytes of the frame are still to come."""
    if len(received) < frames.HEADER:
        return frames.HEADER - len(received)
    return frames.HEADER + frames.body_length(bytes(received[: frames.HEADER]), limit) - len(received)
