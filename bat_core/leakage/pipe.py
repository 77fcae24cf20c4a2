"""One question and its answer over a process's pipes, within a time limit and without a deadlock."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from typing import Any

from bat_core.leakage import frames

_CHUNK = 1 << 16


def exchange(process: subprocess.Popen[bytes], frame: bytes, timeout: float) -> Any:
    """Send a frame and return the value of the one that comes back.

    Raises:
        EOFError: The process closed its end.
        OSError: It is gone, or (`TimeoutError`) it took too long.
        ValueError: It answered something that isn't exactly one frame.
    """
    if process.stdin is None or process.stdout is None:
        raise EOFError
    reader, writer = process.stdout.fileno(), process.stdin.fileno()
    received, outgoing = bytearray(), memoryview(frame)
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        selector.register(writer, selectors.EVENT_WRITE)
        os.set_blocking(writer, False)
        while (missing := _missing(received)) or outgoing:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
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


def _missing(received: bytearray) -> int:
    """Return how many bytes of the frame are still to come."""
    if len(received) < frames.HEADER:
        return frames.HEADER - len(received)
    return frames.HEADER + frames.body_length(bytes(received[: frames.HEADER])) - len(received)
