"""A table of fingerprints: which of many hashes are in it, at the price of one look into a small map for each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.hashing import U64, Ints

_LEAST_BITS = 16
_MOST_BITS = 24
_SPARSE = 16


class Found(NamedTuple):
    """Which of the hashes asked for are in a table, and in which rows of it, one pair for each row."""

    at: Ints
    rows: Ints


class Table:
    """Rows by hash; several rows may have the same one.

    Attributes:
        hashes: One for each row, in ascending order.
    """

    def __init__(self, hashes: U64) -> None:
        self.hashes = hashes
        self.keys, self._first, self._counts = np.unique(hashes, return_index=True, return_counts=True)
        bits = min(_MOST_BITS, max(_LEAST_BITS, (_SPARSE * len(self.keys)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._map: NDArray[np.bool_] = np.zeros(1 << bits, bool)
        self._map[self.keys >> self._shift] = True

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.hashes)

    def contains(self, hashes: U64) -> tuple[Ints, Ints]:
        """Return which of `hashes` are in the table, and as which of its keys."""
        if not len(self.keys):
            return _NONE, _NONE
        likely = np.flatnonzero(self._map[hashes >> self._shift])
        wanted = hashes[likely]
        places = np.searchsorted(self.keys, wanted)
        places[places == len(self.keys)] = 0
        sure = self.keys[places] == wanted
        return likely[sure], places[sure]

    def find(self, hashes: U64) -> Found:
        """Return all rows of all `hashes` that are in the table."""
        at, places = self.contains(hashes)
        if not len(at):
            return Found(_NONE, _NONE)
        counts = self._counts[places]
        starts = np.repeat(self._first[places], counts)
        within = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Found(np.repeat(at, counts), starts + within)


_NONE = np.zeros(0, np.int64)
