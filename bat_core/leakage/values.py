"""What number words mean, as fingerprints."""

from __future__ import annotations

import numpy as np

from bat_core.leakage.batch import Batch
from bat_core.leakage.hashing import U64, Hasher, Ints
from bat_core.leakage.numbers import read

_REMEMBERED = 1 << 20


class Values:
    """What number words mean, as fingerprints; each word is read once."""

    def __init__(self, hasher: Hasher) -> None:
        self._hasher = hasher
        self._keys: U64 = np.zeros(1, np.uint64)
        self._meant: U64 = np.zeros((1, 2), np.uint64)
        self._last: tuple[Batch, tuple[Ints, U64]] | None = None

    def of(self, batch: Batch) -> tuple[Ints, U64]:
        """Return words that are numbers, once for each value they can have, and these values."""
        if self._last is None or self._last[0] is not batch:
            self._last = (batch, self._of(batch))
        return self._last[1]

    def _of(self, batch: Batch) -> tuple[Ints, U64]:
        numerals = batch.numerals
        dotted = batch.raw[batch.starts[numerals] - 1] == ord(".")
        keys = batch.words[numerals] + dotted.astype(np.uint64)
        places = self._places(keys)
        unknown = np.flatnonzero(self._keys[places] != keys)
        if len(unknown):
            self._learn(batch, numerals[unknown], keys[unknown])
            places = self._places(keys)
        meant = self._meant[places]
        one, two = np.flatnonzero(meant[:, 0]), np.flatnonzero(meant[:, 1])
        return np.concatenate([numerals[one], numerals[two]]), np.concatenate([meant[one, 0], meant[two, 1]])

    def _places(self, keys: U64) -> Ints:
        places = np.searchsorted(self._keys, keys)
        places[places == len(self._keys)] = 0
        return places

    def _learn(self, batch: Batch, words: Ints, keys: U64) -> None:
        """Read words that are new; start over when there are too many, so that memory stays bounded."""
        fresh, first = np.unique(keys, return_index=True)
        meant = np.array([self._read(batch.word(int(words[at]))) for at in first.tolist()], np.uint64)
        if len(self._keys) > _REMEMBERED:
            self._keys, self._meant = np.zeros(1, np.uint64), np.zeros((1, 2), np.uint64)
            fresh, first = np.unique(keys, return_index=True)
        joined = np.concatenate([self._keys, fresh])
        order = np.argsort(joined, kind="stable")
        self._keys, self._meant = joined[order], np.concatenate([self._meant, meant])[order]

    def _read(self, word: str) -> tuple[int, int]:
        values = [self.value(value) for value in read(word).values[:2]]
        one, two, *_ = [*values, 0, 0]
        return one, two

    def value(self, canonical_value: str) -> int:
        """Return the fingerprint of a value."""
        return self._hasher.whole(b"#" + canonical_value.encode())
