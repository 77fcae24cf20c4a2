"""Which texts of a batch may be encoded: a cheap look at letters that leaves few texts to the decoders."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bat_core.leakage.batch import Batch
from bat_core.leakage.decode import looks_base64
from bat_core.leakage.hashing import Bytes, Ints

_RUN = 12
_MEMBER, _UPPER, _ESCAPE, _HEX = 1, 2, 4, 8
_HEX_RUN = re.compile(rb"[0-9A-Fa-f]{16}")
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}|&[#A-Za-z]|\\[uUxnrt0-3\"'/\\]|=(?:[2-7][A-F]|[A-F][0-9A-F])")
_SPOKEN = re.compile(rb"point[\s-]+(?:zero|oh|n[ao]ught|one|two|three|four|five|six|seven|eight|nine)\b", re.IGNORECASE)
_SPACED = 7
_HEX_LENGTH = 16


def _table() -> Bytes:
    table = np.zeros(256, np.uint8)
    for code in range(128):
        char = chr(code)
        if char.isalnum() or char in "+/_-=":
            table[code] |= _MEMBER
        if char.isupper():
            table[code] |= _UPPER
        if char in "%&\\=":
            table[code] |= _ESCAPE
        if char in "0123456789abcdefABCDEF":
            table[code] |= _HEX
    return table


_TABLE = _table()


def suspects(batch: Batch) -> Iterator[int]:
    """Yield places in the text of a batch near which something may be encoded, in no order."""
    table = _TABLE[batch.raw]
    yield from _escapes(batch, table)
    yield from _long_runs(batch, table)
    yield from _spaced_hex(batch, table)
    yield from (match.start() for match in _SPOKEN.finditer(batch.text))


def _escapes(batch: Batch, table: Bytes) -> Iterator[int]:
    for at in np.flatnonzero(table & _ESCAPE).tolist():
        if _ESCAPED.match(batch.text, at):
            yield at


def _long_runs(batch: Batch, table: Bytes) -> Iterator[int]:
    """Yield where long runs begin that have letters of both cases or look like base32 or hexadecimal digits."""
    outside = np.flatnonzero((table & _MEMBER) == 0)
    long = np.flatnonzero(np.diff(outside) > _RUN)
    starts, ends = outside[long] + 1, outside[long + 1]
    capitals = np.cumsum(table & _UPPER, dtype=np.int32)
    mixed = np.flatnonzero(capitals[ends] > capitals[starts - 1])
    for start, end in zip(starts[mixed].tolist(), ends[mixed].tolist(), strict=True):
        run = batch.text[start:end].decode(errors="replace")
        if looks_base64(run) or _base32(run):
            yield start
    for word in np.flatnonzero(batch.ends - batch.starts >= _HEX_LENGTH).tolist():
        if _HEX_RUN.search(batch.text, int(batch.starts[word]), int(batch.ends[word])):
            yield int(batch.starts[word])


def _base32(run: str) -> bool:
    return len(run) >= _HEX_LENGTH and run == run.upper() and run.rstrip("=").isalnum()


def _spaced_hex(batch: Batch, table: Bytes) -> Iterator[int]:
    """Yield where seven words in a row are two hexadecimal digits each."""
    starts: Ints = batch.starts
    pairs = (batch.ends - starts == 2) & ((table[starts] & table[starts + 1] & _HEX) > 0)
    if len(pairs) >= _SPACED:
        every = np.convolve(pairs, np.ones(_SPACED, np.int64), "valid") == _SPACED
        yield from starts[np.flatnonzero(every)].tolist()
