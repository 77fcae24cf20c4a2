"""Frames between a process and its child: four bytes of length, then JSON."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

LIMIT = 256 * 1024 * 1024
"""Largest frame in bytes; a longer one is garbage."""
HEADER = 4


def encode(value: Any) -> bytes:
    """Return a value as a frame.

    Raises:
        ValueError, TypeError, RecursionError: It isn't JSON, or nested deeper than the encoder goes.
    """
    return framed(json.dumps(value, separators=(",", ":")).encode())


def framed(body: bytes) -> bytes:
    """Return JSON text as a frame.

    Raises:
        ValueError: It is too long.
    """
    if len(body) > LIMIT:
        raise ValueError("a frame is too long")
    return struct.pack(">I", len(body)) + body


def body_length(header: bytes, limit: int = LIMIT) -> int:
    """Return the length that a header announces.

    Raises:
        ValueError: No frame is that long.
    """
    length = int(struct.unpack(">I", header)[0])
    if length > limit:
        raise ValueError("a frame is too long")
    return length


def read(stream: BinaryIO, limit: int = LIMIT) -> Any:
    """Return the next frame's value; `limit` is the longest body in bytes.

    Raises:
        EOFError: The stream ended, between frames or within one.
        ValueError: It isn't a frame.
    """
    return json.loads(_exactly(stream, body_length(_exactly(stream, HEADER), limit)))


def write(stream: BinaryIO, value: Any) -> None:
    """Write a value as a frame at once."""
    stream.write(encode(value))
    stream.flush()


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data
