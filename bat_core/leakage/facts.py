"""Facts: a number and a word near it. They survive other words, another order and another language.

One fact is no leak. A sample leaks a text if it holds so many of its facts that chance can't bring them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.context import Context
from bat_core.leakage.counts import Counts, own_counts
from bat_core.leakage.hashing import U64, Ints
from bat_core.leakage.language import Floats, texts_batch
from bat_core.leakage.numbers import read, spellings
from bat_core.leakage.table import Table
from bat_core.leakage.values import Values
from bat_core.model.leakage import HeldoutItem

REACH = 8
"""Words to each side of a number."""
_LEAST_FACTS = 3
_PAIR_BITS = 5.5
_LETTERS = 3
Arrays = Mapping[str, NDArray[np.generic]]


class Pairs(NamedTuple):
    """Numbers with a word near them: fingerprint of both, and the positions of the number and of the word."""

    hashes: U64
    numbers: Ints
    words: Ints


def pairs_of(batch: Batch, numbers: Ints, values: U64) -> Pairs:
    """Return each number with each longer word within reach."""
    telling = (batch.ends - batch.starts >= _LETTERS) & (batch.low[batch.starts] > ord("9"))
    hashes, where, words = [], [], []
    salted = values * np.uint64(0x9E3779B97F4A7C15)
    for step in (*range(-REACH, 0), *range(1, REACH + 1)):
        beside = np.clip(numbers + step, 0, len(telling) - 1)
        chosen = np.flatnonzero(telling[beside])
        hashes.append(salted[chosen] + batch.stems[beside[chosen]])
        where.append(numbers[chosen])
        words.append(beside[chosen])
    return Pairs(batch.hasher.mixed(np.concatenate(hashes)), np.concatenate(where), np.concatenate(words))


class Sum(NamedTuple):
    """Facts of a text that a sample holds."""

    samples: Ints
    sources: Ints
    bits: Floats
    facts: Ints
    at: Ints


class FactIndex:
    """Held-out texts by their facts."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = dict(arrays)
        self._table = Table(arrays["pairs"].astype(np.uint64))
        self._facts: Ints = arrays["facts"].astype(np.int64)
        self._bits: Floats = arrays["bits"].astype(np.float64)
        self.sources: Ints = arrays["sources"].astype(np.int64)
        self.kinds: Ints = arrays["kinds"].astype(np.int64)

    def sums(self, batch: Batch, values: Values) -> Sum | None:
        """Return the facts that the samples of a batch share with the texts."""
        numbers, meant = values.of(batch)
        if not len(numbers):
            return None
        pairs = pairs_of(batch, numbers, meant)
        found = self._table.find(pairs.hashes)
        if not len(found.at):
            return None
        where, facts = pairs.numbers[found.at], self._facts[found.rows]
        samples, bits = batch.word_samples[where], self._bits[found.rows]
        order = np.lexsort((-bits, facts, samples))
        samples, facts, bits, where = samples[order], facts[order], bits[order], where[order]
        fresh = np.ones(len(order), bool)
        fresh[1:] = (facts[1:] != facts[:-1]) | (samples[1:] != samples[:-1])
        samples, facts, bits, where = samples[fresh], facts[fresh], bits[fresh], where[fresh]
        sources = self.sources[facts]
        heads = np.ones(len(samples), bool)
        heads[1:] = (sources[1:] != sources[:-1]) | (samples[1:] != samples[:-1])
        begin = np.flatnonzero(heads)
        return Sum(
            samples[begin],
            sources[begin],
            np.add.reduceat(bits, begin),
            np.diff(np.append(begin, len(samples))),
            np.minimum.reduceat(where, begin),
        )


def index_facts(items: Sequence[HeldoutItem], kinds: Sequence[int], context: Context) -> tuple[FactIndex, set[str]]:
    """Return an index of the facts of texts, and the ids of texts with enough of them."""
    values = context.values
    clean = _clean(context, values)
    rows = list(_rows(items, context, values))
    if not rows:
        return FactIndex(_nothing()), set()
    sizes = [len(row.hashes) for row in rows]
    hashes, words = np.concatenate([row.hashes for row in rows]), np.concatenate([row.words for row in rows])
    facts = np.repeat(np.arange(len(rows)), sizes)
    sources = np.array([row.item for row in rows])
    order = {task: number for number, task in enumerate(dict.fromkeys(item.task for item in items))}
    owners = np.array([order[item.task] for item in items], np.int64)[sources[facts]]
    clean.pairs.add(np.unique(np.stack([owners.astype(np.uint64), hashes]), axis=1)[1])
    clean.words.add(words)
    documents = clean.documents + len(order)
    others = np.maximum(clean.pairs.of(hashes) - 1, 0)
    rates = np.maximum(clean.words.of(words) - own_counts(words, owners), 0) / documents
    digits = np.array([row.digits for row in rows])[facts]
    chance = np.maximum((others + 0.5) / (documents + 1), rates * 10.0**-digits)
    bits = -np.log2(np.minimum(chance, 1.0))
    keep = np.flatnonzero(bits >= _PAIR_BITS)
    keep = keep[np.argsort(hashes[keep], kind="stable")]
    covered = _covered(items, facts[keep], bits[keep], sources)
    arrays = {
        "pairs": hashes[keep],
        "facts": facts[keep].astype(np.uint32),
        "bits": bits[keep].astype(np.float32),
        "sources": sources.astype(np.uint32),
        "kinds": np.array(kinds, np.uint8),
    }
    return FactIndex(arrays), covered


class _Row(NamedTuple):
    """A value of an item, with the words near it, in all spellings."""

    item: int
    hashes: U64
    words: U64
    digits: int


def _rows(items: Sequence[HeldoutItem], context: Context, values: Values) -> Iterator[_Row]:
    for number, item in enumerate(items):
        batch = texts_batch([item.text], context.hasher)
        same: dict[tuple[str, ...], list[int]] = {}
        for at in batch.numerals.tolist():
            same.setdefault(read(batch.word(at)).values, []).append(at)
        for key, places in same.items():
            if key:
                yield _row(number, batch, places, values)


def _row(item: int, batch: Batch, places: Sequence[int], values: Values) -> _Row:
    """Return one value of an item: a number that stands there twice is one fact."""
    reading = read(batch.word(places[0]))
    where, spelled = [], []
    for at in places:
        after = batch.text[int(batch.ends[at]) : int(batch.ends[at]) + 12].decode(errors="replace")
        for value in spellings(reading, after):
            where.append(at)
            spelled.append(values.value(value))
    pairs = pairs_of(batch, np.array(where), np.array(spelled, np.uint64))
    hashes, first = np.unique(pairs.hashes, return_index=True)
    return _Row(item, hashes, batch.stems[pairs.words[first]], max(reading.digits, 1))


class _Clean(NamedTuple):
    """In how many clean samples pairs stand, and how many numbers stand near words."""

    pairs: Counts
    words: Counts
    documents: int


def _clean(context: Context, values: Values) -> _Clean:
    counts, words, documents = Counts(), Counts(), 0
    for batch in context.clean_batches():
        documents += len(batch.samples)
        numbers, meant = values.of(batch)
        if len(numbers):
            pairs = pairs_of(batch, numbers, meant)
            samples = batch.word_samples[pairs.numbers].astype(np.uint64)
            order = np.lexsort((pairs.hashes, samples))
            hashes, samples = pairs.hashes[order], samples[order]
            fresh = np.ones(len(order), bool)
            fresh[1:] = (hashes[1:] != hashes[:-1]) | (samples[1:] != samples[:-1])
            counts.add(hashes[fresh])
            words.add(batch.stems[pairs.words])
    return _Clean(counts, words, documents)


def _covered(items: Sequence[HeldoutItem], facts: Ints, bits: Floats, sources: Ints) -> set[str]:
    best = np.zeros(len(sources))
    np.maximum.at(best, facts, bits)
    covered = set()
    for number, item in enumerate(items):
        mine = best[sources == number]
        if (mine > 0).sum() >= _LEAST_FACTS:
            covered.add(item.item_id)
    return covered


def _nothing() -> dict[str, NDArray[np.generic]]:
    none = np.zeros(0, np.uint64)
    return dict.fromkeys(("pairs", "facts", "bits", "sources", "kinds"), none)
