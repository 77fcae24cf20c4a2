"""Frames over a pipe pair: the lengths of a JSON header and of a raw body, then both."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

PREFIX = struct.Struct(">IQ")
MAX_HEADER = 64 << 20


class Frame(NamedTuple):
    """One message; the body never goes through JSON."""

    header: dict[str, Any]
    body: bytearray


class Closed(Exception):
    """The other side is gone."""


def read_frame(handle: int) -> Frame:
    """Block until a whole frame is there. Raises `Closed` at the end of the stream."""
    head, body = PREFIX.unpack(_exactly(handle, PREFIX.size))
    if head > MAX_HEADER:
        raise Closed("a header is too long")
    return Frame(json.loads(_exactly(handle, head)), _exactly(handle, body))


def _exactly(handle: int, size: int) -> bytearray:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        got = os.readv(handle, [view[at:]])
        if got == 0:
            raise Closed("the pipe was closed")
        at += got
    return data


def write_frame(handle: int, header: dict[str, Any], chunks: Sequence[bytes | bytearray] = ()) -> None:
    """Block until the frame is written; `chunks` together are the body and are not joined."""
    head = json.dumps(header, separators=(",", ":")).encode()
    parts = [PREFIX.pack(len(head), sum(len(chunk) for chunk in chunks)), head, *chunks]
    small = b"".join(parts) if sum(map(len, parts)) <= 1 << 16 else b""
    for part in [small] if small else parts:
        view = memoryview(part)
        while view:
            view = view[os.write(handle, view) :]
