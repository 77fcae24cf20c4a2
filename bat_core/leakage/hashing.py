"""Keyed fingerprints of bytes: a table of secret constants, and hashes of many spans of a text at once.

The hash of a span is a polynomial of its bytes over secret numbers, so that prefix sums give the hash of every span
of a text in one pass. It is fast, not one-way: whoever holds the key can try guesses. Without the key it says nothing,
and an index file is sealed besides.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

KEY_BYTES = 32
_WIDTH = 64
_STEP = 1 << 16
_ANCHOR_MASK = np.uint64(0xFFFFFFFFFF000000)
_SPAN_MASK = np.uint64(0xFFFFFFFFFFFFFF00)


class Constants(NamedTuple):
    """What a key stands for."""

    letters: U64
    base: int
    odd: U64


class Hasher:
    """Fingerprints under one key."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        stream = np.frombuffer(hashlib.shake_256(b"bat-leakage" + key).digest(8 * 300), "<u8")
        self._constants = Constants(stream[:256].copy(), int(stream[256]) & ~7 | 5, stream[257:] | np.uint64(1))
        self._powers = np.ones(1, np.uint64)
        self._inverse = np.ones(1, np.uint64)

    @cached_property
    def identity(self) -> str:
        """Name of the key, from which it can't be found."""
        return hashlib.blake2b(b"identity", key=self.key, digest_size=8).hexdigest()

    def powers(self, count: int) -> U64:
        """Return the first `count` powers of the base."""
        if len(self._powers) < count:
            size = -(-count // _STEP) * _STEP
            self._powers = _powers(self._constants.base, size)
            self._inverse = _powers(pow(self._constants.base, -1, 1 << _WIDTH), size)
        return self._powers[:count]

    def sums(self, data: Bytes) -> U64:
        """Return prefix sums from which `spans` takes the hash of any span of `data`."""
        sums = np.empty(len(data) + 1, np.uint64)
        sums[0] = 0
        terms = self._constants.letters[data]
        terms *= self.powers(len(data) + 1)[:-1]
        np.cumsum(terms, out=sums[1:])
        return sums

    def spans(self, sums: U64, starts: Ints, ends: Ints) -> U64:
        """Return the hashes of spans of the data that `sums` was made of."""
        return self.mixed((sums[ends] - sums[starts]) * self._inverse[starts]) & _SPAN_MASK

    def whole(self, data: bytes) -> int:
        """Return the hash of some bytes: the same as of a span that holds them."""
        sums = self.sums(np.frombuffer(data, np.uint8))
        return int(self.spans(sums, np.zeros(1, np.int64), np.array([len(data)]))[0])

    def mixed(self, hashes: U64) -> U64:
        """Return hashes whose high bits depend on all bits."""
        hashes = hashes ^ (hashes >> np.uint64(32))
        hashes *= self._constants.odd[0]
        hashes ^= hashes >> np.uint64(29)
        hashes *= self._constants.odd[1]
        return hashes

    def together(self, *parts: U64) -> U64:
        """Return one hash for each row of hashes; the order matters."""
        total = parts[0] * self._constants.odd[2]
        for number, part in enumerate(parts[1:], 3):
            total += part * self._constants.odd[number]
        return self.mixed(total) & _SPAN_MASK

    def anchors(self, windows: U64) -> U64:
        """Return 40-bit hashes of eight bytes each, which can't be turned back into the bytes."""
        return self.mixed(windows * self._constants.odd[20]) & _ANCHOR_MASK


def _powers(base: int, count: int) -> U64:
    powers = np.full(count, base & ((1 << _WIDTH) - 1), np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)
