"""Which texts of a batch may be encoded: a cheap look at letters that leaves few texts to the decoders."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bat_core.leakage.batch import Batch
from bat_core.leakage.hashing import Bytes, Ints

_RUN = 12
_MEMBER, _UPPER, _ESCAPE, _HEX = 1, 2, 4, 8
_HEX_RUN = re.compile(rb"[0-9A-Fa-f]{16}")
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}|&[#A-Za-z]|\\[uUxnrt0-3\"'/\\]|=[0-9A-F]{2}|=\r?\n")
_SPACED = 7


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


def _escapes(batch: Batch, table: Bytes) -> Iterator[int]:
    for at in np.flatnonzero(table & _ESCAPE).tolist():
        if _ESCAPED.match(batch.text, at):
            yield at


def _long_runs(batch: Batch, table: Bytes) -> Iterator[int]:
    outside = np.flatnonzero((table & _MEMBER) == 0)
    long = np.flatnonzero(np.diff(outside) > _RUN)
    starts, ends = outside[long] + 1, outside[long + 1]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        run = batch.text[start:end]
        if (run != run.lower() and run != run.upper()) or _HEX_RUN.search(run) or _base32(run):
            yield start


def _base32(run: bytes) -> bool:
    return len(run) >= 16 and run.rstrip(b"=").isalnum() and run == run.upper()


def _spaced_hex(batch: Batch, table: Bytes) -> Iterator[int]:
    """Yield where seven words in a row are two hexadecimal digits each."""
    starts: Ints = batch.starts
    pairs = (batch.ends - starts == 2) & ((table[starts] & table[starts + 1] & _HEX) > 0)
    if len(pairs) >= _SPACED:
        every = np.convolve(pairs, np.ones(_SPACED, np.int64), "valid") == _SPACED
        yield from starts[np.flatnonzero(every)].tolist()
