"""How often fingerprints were seen, kept as sorted arrays so that counting streams."""

from __future__ import annotations

import numpy as np

from bat_core.leakage.hashing import U64, Ints

_PENDING = 1 << 21


class Counts:
    """Counts of fingerprints."""

    def __init__(self) -> None:
        self.keys: U64 = np.zeros(0, np.uint64)
        self.counts: Ints = np.zeros(0, np.int64)
        self._pending: list[U64] = []
        self._waiting = 0
        self.total = 0

    def add(self, hashes: U64) -> None:
        """Count each of `hashes` once more."""
        self._pending.append(hashes)
        self._waiting += len(hashes)
        self.total += len(hashes)
        if self._waiting > _PENDING:
            self._merge()

    def _merge(self) -> None:
        fresh, number = np.unique(np.concatenate(self._pending), return_counts=True)
        keys, places = np.unique(np.concatenate([self.keys, fresh]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, places, np.concatenate([self.counts, number]))
        self.keys, self.counts = keys, counts
        self._pending, self._waiting = [], 0

    def of(self, hashes: U64) -> Ints:
        """Return how often each of `hashes` was counted."""
        if self._pending:
            self._merge()
        if not len(self.keys):
            return np.zeros(len(hashes), np.int64)
        places = np.searchsorted(self.keys, hashes)
        places[places == len(self.keys)] = 0
        return np.where(self.keys[places] == hashes, self.counts[places], 0)


def own_counts(hashes: U64, owners: Ints) -> Ints:
    """Return for each hash how often its owner has it."""
    order = np.lexsort((owners, hashes))
    ranked, who = hashes[order], owners[order]
    fresh = np.ones(len(hashes), bool)
    fresh[1:] = (ranked[1:] != ranked[:-1]) | (who[1:] != who[:-1])
    group = np.cumsum(fresh) - 1
    result = np.empty(len(hashes), np.int64)
    result[order] = np.bincount(group)[group] if len(hashes) else 0
    return result
