"""How surprising words are: bits under a model of clean text and of the other tasks' held-out texts.

A text that is copied brings its whole surprisal; one that merely resembles brings what templates leave open. So a
match is weighed by bits, not by words, and boilerplate needs no list: it has none. The counts of an item's own task
don't count for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.counts import Counts, own_counts
from bat_core.leakage.english import COMMON
from bat_core.leakage.hashing import U64, Hasher, Ints
from bat_core.leakage.normalise import MARK
from bat_core.leakage.numbers import read

Floats = NDArray[np.float64]

WORD_BITS = 14.0
"""Most that one word may weigh."""
_DIGIT_BITS = 3.32
_COMMON_BITS = 8.0
_RARE_BITS = 13.0
_PRIOR = 2000.0
"""Words of general text that the prior is worth."""
_BACKOFF = 3.0
_MARK = ord(MARK)
_POINT = 4
_SHORT, _DECIMAL = 3, 2
_RUN = 5
_FRAME = 0.05
"""What is left of a word's bits in a run that several tasks share."""
_OPENING, _OPENING_BITS = 2, 5.0
"""How a text opens has no words before it to expect it from; it is mostly the start of any sentence."""


class Seen(NamedTuple):
    """Counts of words, pairs and runs of three."""

    words: Counts
    pairs: Counts
    runs: Counts
    numbers: Counts


class Language:
    """A model of clean text: words, and what follows on one or two of them.

    Attributes:
        documents: How many samples and tasks were counted.
    """

    def __init__(self, hasher: Hasher) -> None:
        self.hasher = hasher
        self.documents = 0
        self._seen = Seen(Counts(), Counts(), Counts(), Counts())
        self._common = np.array(sorted(hasher.whole(word.encode()) for word in COMMON), np.uint64)
        self._heldout = False

    def add(self, batch: Batch) -> None:
        """Count the words of clean samples."""
        self.documents += len(batch.samples)
        for counts, hashes in zip(self._seen, _orders(batch), strict=True):
            counts.add(hashes)

    def bits(self, batch: Batch, tasks: Ints) -> Floats:
        """Return the surprisal of every word of held-out texts.

        Args:
            batch: One sample for each text; they are counted, too.
            tasks: For each text the number of its task.
        """
        forms, pairs, runs, numbers = orders = _orders(batch)
        owners = np.append(tasks, -1)[np.maximum(batch.word_samples, -1)]
        for counts, hashes in zip(self._seen, orders, strict=True):
            counts.add(hashes)
        one = _others(self._seen.words, forms, owners)
        two = _others(self._seen.pairs, pairs, owners[1:])
        three = _others(self._seen.runs, runs, owners[2:])
        likely = (one + _PRIOR * self._prior(forms)) / (self._seen.words.total + _PRIOR)
        inside = batch.low[batch.starts] != _MARK
        second = inside[:-1]
        likely[1:][second] = ((two + _BACKOFF * likely[1:]) / (one[:-1] + _BACKOFF))[second]
        third = inside[:-2] & inside[1:-1]
        likely[2:][third] = ((three + _BACKOFF * likely[2:]) / (two[:-1] + _BACKOFF))[third]
        bits = -np.log2(np.minimum(likely, 1.0)) + _digits(batch)
        numerals = batch.numerals
        exact = _others(self._seen.numbers, numbers, owners[numerals]) / (one[numerals - 1] + _BACKOFF)
        bits[numerals] = np.minimum(bits[numerals], -np.log2(np.maximum(exact, 2.0**-_RARE_BITS)))
        first = np.flatnonzero(~inside)[:-1, None] + np.arange(1, _OPENING + 1)
        bits[first] = np.minimum(bits[first], _OPENING_BITS)
        framed = _framed(batch, owners)
        framed[2:] &= three == two[:-1]  # whatever else could follow there would be content
        framed[numerals] = False
        bits[framed] *= _FRAME
        weights: Floats = np.minimum(bits, WORD_BITS)
        return weights

    def _prior(self, words: U64) -> Floats:
        common = np.isin(words, self._common)
        prior: Floats = np.where(common, 2.0**-_COMMON_BITS, 2.0**-_RARE_BITS)
        return prior


def _framed(batch: Batch, owners: Ints) -> NDArray[np.bool_]:
    """Return which words stand in runs of words that texts of several tasks have: frames, not content."""
    words = batch.words
    runs = batch.hasher.together(*(words[step : len(words) - _RUN + 1 + step] for step in range(_RUN)))
    pairs = np.unique(np.stack([runs, owners[: len(runs)].astype(np.uint64)]), axis=1)
    several, tasks = np.unique(pairs[0], return_counts=True)
    starts = np.flatnonzero(np.isin(runs, several[tasks > 1]))
    framed = np.zeros(len(words), bool)
    for step in range(_RUN):
        framed[starts + step] = True
    return framed


def _orders(batch: Batch) -> tuple[U64, U64, U64, U64]:
    """Return words, pairs and runs of three, all numbers of a sort being one word; and exact numbers."""
    forms = batch.words.copy()
    numerals = batch.numerals
    lengths = (batch.ends - batch.starts)[numerals]
    pointed = (batch.classes[batch.ends[numerals] - 2] | batch.classes[batch.starts[numerals] + 1]) & _POINT
    forms[numerals] = np.where(pointed, _DECIMAL, lengths > _SHORT).astype(np.uint64)
    together = batch.hasher.together
    numbers = together(forms[numerals - 1], batch.words[numerals])
    return forms, together(forms[:-1], forms[1:]), together(forms[:-2], forms[1:-1], forms[2:]), numbers


def _others(counts: Counts, hashes: U64, owners: Ints) -> Floats:
    """Return how often others have each hash."""
    others: Floats = np.maximum(counts.of(hashes) - own_counts(hashes, owners), 0).astype(np.float64)
    return others


def _digits(batch: Batch) -> Floats:
    """Return what the digits of each number weigh: as much as guessing them."""
    digits = np.zeros(len(batch.starts))
    for number in batch.numerals.tolist():
        word = batch.word(number)
        reading = read(word)
        digits[number] = _DIGIT_BITS * max(reading.digits if reading.values else len(word), 1)
    return digits


def searched_bits(tasks: int) -> float:
    """Return what a match must weigh more because it may be one with any of many tasks."""
    return float(np.log2(max(tasks, 1)))


def texts_batch(texts: Sequence[str], hasher: Hasher) -> Batch:
    """Return a batch with one sample for each text."""
    return Batch([[text] for text in texts], hasher)
