"""Copied runs of words: how many bits of a held-out text a sample holds, and what share of it.

Each held-out text stands here as the fingerprints of its runs of three words, also reversed and in rot13, and as the
bits of its words. A sample's hits on one text are joined to runs; a run weighs its bits less what chance can bring.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.hashing import U64, Hasher, Ints
from bat_core.leakage.language import WORD_BITS, Floats, Language, texts_batch
from bat_core.leakage.table import Table
from bat_core.model.leakage import HeldoutItem

SIZE = 3
_GRAM_BITS = 5.0
"""A run of three words with fewer bits is boilerplate and not indexed."""
_RUN_COST = 2.0
"""What a run must bring besides the bits for the number of words at which it could have begun."""
_SEARCH_COST = 3.0
_GAP = 16
"""Words that a run may skip, in step: boilerplate that isn't indexed, or words that were exchanged."""
_DISGUISED_BITS = 2.0
"""What each word weighs more that stands reversed or in rot13: nobody writes so by chance."""
_REPEATED_BITS = 2.0
"""What a word weighs that stood in the same text before."""
Arrays = Mapping[str, NDArray[np.generic]]


class Match(NamedTuple):
    """What samples hold of held-out texts, one entry for each pair of a sample and a text.

    Attributes:
        samples, sources: Which ones.
        bits: Surprisal of the words in common, less the cost of chance.
        shares: Bits in common, as a share of all bits of the text.
        words: How many words.
        at: First word of the longest run, in the batch.
        length: Words of that run.
    """

    samples: Ints
    sources: Ints
    bits: Floats
    shares: Floats
    words: Ints
    at: Ints
    length: Ints


class _Hits(NamedTuple):
    """Runs of three words that a sample shares with the texts: in which sample, which place, at which word."""

    samples: Ints
    places: Ints
    at: Ints

    def taken(self, order: Ints) -> _Hits:
        """Return these hits in another order, or some of them."""
        return _Hits(self.samples[order], self.places[order], self.at[order])


class RunIndex:
    """Held-out texts by their runs of three words."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = dict(arrays)
        self._table = Table(arrays["grams"].astype(np.uint64))
        self._places: Ints = arrays["places"].astype(np.int64)
        self._bits: Floats = np.concatenate([[0.0], np.cumsum(arrays["bits"].astype(np.float64))])
        self.starts: Ints = arrays["starts"].astype(np.int64)
        self._all: U64 = arrays["all"].astype(np.uint64)
        self.kinds: Ints = arrays["kinds"].astype(np.int64)
        self.own: Floats = self._bits[self.starts[1:]] - self._bits[self.starts[:-1]]

    @classmethod
    def of(cls, items: Sequence[HeldoutItem], kinds: Sequence[int], language: Language) -> RunIndex:
        """Return an index of texts, each with the number of its kind."""
        if not items:
            return cls(_nothing())
        batch = texts_batch([item.text for item in items], language.hasher)
        order = {task: number for number, task in enumerate(dict.fromkeys(item.task for item in items))}
        bits = language.bits(batch, np.array([order[item.task] for item in items], np.int64))
        parts = [_forms(batch, number, item.text, bits, language.hasher) for number, item in enumerate(items)]
        return cls(_laid_out(parts, kinds))

    def matches(self, batch: Batch) -> Match | None:
        """Return what the samples of a batch hold of the texts."""
        found = self._table.find(batch.grams)
        if not len(found.at):
            return None
        places = self._places[found.rows]
        hits = self._best(_Hits(batch.word_samples[found.at], places, found.at))
        hits, head, gained = self._runs(hits)
        sources = np.searchsorted(self.starts, hits.places, "right") - 1
        runs = np.flatnonzero(head)
        places = np.log2(np.bincount(np.maximum(batch.word_samples, 0), minlength=len(batch.samples)))
        kept = np.maximum(np.add.reduceat(gained, runs) - places[hits.samples[runs]] - _RUN_COST, 0.0)
        heads = np.ones(len(runs), bool)
        samples, owners = hits.samples[runs], sources[runs]
        order = np.lexsort((owners, samples))
        samples, owners, kept, runs = samples[order], owners[order], kept[order], runs[order]
        heads[1:] = (samples[1:] != samples[:-1]) | (owners[1:] != owners[:-1])
        groups = np.flatnonzero(heads)
        last = np.append(np.flatnonzero(head)[1:], len(head)) - 1
        lengths = (hits.places[last] - hits.places[head] + SIZE)[order]
        whole = np.add.reduceat(gained, np.flatnonzero(head))[order]
        best = _first_of_longest(groups, lengths)
        return Match(
            samples=samples[groups],
            sources=owners[groups],
            bits=np.add.reduceat(kept, groups) - _SEARCH_COST,
            shares=np.add.reduceat(whole, groups) / np.maximum(self.own[owners[groups]], 1.0),
            words=np.add.reduceat(np.where(kept > 0, lengths, 0), groups),
            at=hits.at[runs[best]],
            length=lengths[best],
        )

    def _runs(self, hits: _Hits) -> tuple[_Hits, NDArray[np.bool_], Floats]:
        """Return hits in the order of runs, which of them begin one, and the bits that each adds to its run."""
        shift = hits.at - hits.places
        order = np.lexsort((hits.places, shift, hits.samples))
        hits, shift = hits.taken(order), shift[order]
        head = np.ones(len(order), bool)
        head[1:] = (np.diff(hits.places) > _GAP) | (np.diff(shift) != 0) | (np.diff(hits.samples) != 0)
        before = np.concatenate([[0], hits.places[:-1] + SIZE])
        begin = np.where(head, hits.places, np.maximum(hits.places, before))
        return hits, head, self._bits[hits.places + SIZE] - self._bits[begin]

    def _best(self, hits: _Hits) -> _Hits:
        """Return one hit for each place of a text: that of the run with the most bits."""
        hits, head, gained = self._runs(hits)
        run = np.cumsum(head) - 1
        bits = np.add.reduceat(gained, np.flatnonzero(head))[run]
        order = np.lexsort((-bits, hits.places, hits.samples))
        hits = hits.taken(order)
        first = np.ones(len(order), bool)
        first[1:] = (np.diff(hits.places) != 0) | (np.diff(hits.samples) != 0)
        return hits.taken(np.flatnonzero(first))

    def held(self, batch: Batch, sample: int, source: int) -> float:
        """Return which share of all runs of a text, boilerplate too, stands in a sample."""
        low, high = np.searchsorted(batch.word_samples, [sample, sample + 1])
        begin, end = self.starts[source], self.starts[source + 1]
        grams = self._all[begin : max(begin + 1, end - SIZE + 1)]
        return float(np.isin(grams, batch.grams[low:high]).mean())


def _first_of_longest(groups: Ints, lengths: Ints) -> Ints:
    """Return the number of the longest run of each group."""
    group = np.zeros(len(lengths), np.int64)
    group[groups[1:]] = 1
    group = np.cumsum(group)
    order = np.lexsort((-lengths, group))
    return order[groups]


class _Part(NamedTuple):
    """A text in one form: all its runs of three words, and the bits of its words."""

    grams: U64
    bits: Floats


def _forms(batch: Batch, number: int, text: str, bits: Floats, hasher: Hasher) -> list[_Part]:
    """Return a text as given, reversed and in rot13."""
    low, high = np.searchsorted(batch.word_samples, [number, number + 1])
    high -= 1  # the mark after the sample
    plain = _Part(batch.grams[low : max(low, high - SIZE + 1)], _once(batch.stems[low:high], bits[low:high]))
    backward = texts_batch([text[::-1]], hasher)
    rotated = texts_batch([codecs.encode(text, "rot13")], hasher)
    disguised = np.minimum(plain.bits + _DISGUISED_BITS, WORD_BITS)
    return [plain, _turned(backward, disguised[::-1]), _turned(rotated, disguised)]


def _once(words: U64, bits: Floats) -> Floats:
    """Return the bits of words, few for those that stood before: whoever writes of a thing repeats its name."""
    _, first = np.unique(words, return_index=True)
    repeated = np.ones(len(words), bool)
    repeated[first] = False
    return np.where(repeated, np.minimum(bits, _REPEATED_BITS), bits)


def _turned(batch: Batch, bits: Floats) -> _Part:
    """Return a form of a text; where its words are other ones, they share its bits evenly."""
    count = len(batch.starts) - 2
    if count != len(bits):
        bits = np.full(count, bits.sum() / max(count, 1))
    return _Part(batch.grams[1 : max(1, count - SIZE + 2)], bits)


def _laid_out(parts: Sequence[Sequence[_Part]], kinds: Sequence[int]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of an index: all forms one after the other."""
    flat = [part for forms in parts for part in forms]
    starts = np.cumsum([0, *(len(part.bits) for part in flat)])
    bits = np.concatenate([part.bits for part in flat])
    every = np.zeros(len(bits), np.uint64)
    for begin, part in zip(starts, flat, strict=False):
        every[begin : begin + len(part.grams)] = part.grams
    weight = np.convolve(bits, np.ones(SIZE), "full")[SIZE - 1 :]
    kept = np.flatnonzero((every != 0) & (weight >= _GRAM_BITS))
    order = kept[np.argsort(every[kept], kind="stable")]
    return {
        "grams": every[order],
        "places": order.astype(np.uint32),
        "bits": bits.astype(np.float32),
        "starts": starts.astype(np.uint32),
        "all": every,
        "kinds": np.repeat(np.array(kinds, np.int64), [len(forms) for forms in parts]).astype(np.uint8),
    }


def _nothing() -> dict[str, NDArray[np.generic]]:
    none = np.zeros(0, np.uint64)
    return {"grams": none, "places": none, "bits": none, "starts": np.zeros(1), "all": none, "kinds": none}
