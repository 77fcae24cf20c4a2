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
_SEED_BITS = 8.0
_SEED_TEXTS = 24
"""A match begins with three words that have so many bits and stand in so few texts."""
_LINE_COST = 5.0
"""What words in step must bring besides the bits for the number of words at which they could have begun."""
_SEARCH_COST = 3.0
_BESIDE = 12
"""Words before the first and after the last hit that are compared, too."""
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


class Held(NamedTuple):
    """Shares of texts: of their runs of three words, boilerplate too, and of their bits."""

    runs: Floats
    bits: Floats


class _Lines(NamedTuple):
    """Words that a sample and a text have in step: word `at` of the batch is that at `first`, and so on to `last`."""

    samples: Ints
    sources: Ints
    at: Ints
    first: Ints
    last: Ints


class RunIndex:
    """Held-out texts by their runs of three words."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = dict(arrays)
        self._table = Table(arrays["grams"].astype(np.uint64))
        self._places: Ints = arrays["places"].astype(np.int64)
        self._weights: Floats = arrays["bits"].astype(np.float64)
        self.starts: Ints = arrays["starts"].astype(np.int64)
        self._all: U64 = arrays["all"].astype(np.uint64)
        self.kinds: Ints = arrays["kinds"].astype(np.int64)
        sums = np.concatenate([[0.0], np.cumsum(self._weights)])
        self.own: Floats = sums[self.starts[1:]] - sums[self.starts[:-1]]

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
        lines = self._lines(batch.word_samples[found.at], places, found.at)
        gained, words = self._along(lines, batch)
        chance = np.log2(np.bincount(np.maximum(batch.word_samples, 0), minlength=len(batch.samples))) + _LINE_COST
        kept = np.maximum(gained - chance[lines.samples], 0.0)
        heads = np.ones(len(kept), bool)
        heads[1:] = (np.diff(lines.samples) != 0) | (np.diff(lines.sources) != 0)
        groups = np.flatnonzero(heads)
        sources = lines.sources[groups]
        best = _first_of_most(groups, gained)
        return Match(
            samples=lines.samples[groups],
            sources=sources,
            bits=np.add.reduceat(kept, groups) - _SEARCH_COST,
            shares=np.add.reduceat(gained, groups) / np.maximum(self.own[sources], 1.0),
            words=np.add.reduceat(np.where(kept > 0, words, 0), groups),
            at=lines.at[best],
            length=(lines.last - lines.first)[best] + SIZE,
        )

    def _lines(self, samples: Ints, places: Ints, at: Ints) -> _Lines:
        """Return hits that lie in step with each other as one line each, in the order of samples and texts."""
        sources = np.searchsorted(self.starts, places, "right") - 1
        shift = at - places
        order = np.lexsort((places, shift, sources, samples))
        samples, sources, shift, places = samples[order], sources[order], shift[order], places[order]
        head = np.ones(len(order), bool)
        head[1:] = (np.diff(samples) != 0) | (np.diff(sources) != 0) | (np.diff(shift) != 0)
        begin = np.flatnonzero(head)
        last = places[np.append(begin[1:], len(places)) - 1]
        first = places[begin]
        return _Lines(samples[begin], sources[begin], shift[begin] + first, first, last)

    def _along(self, lines: _Lines, batch: Batch) -> tuple[Floats, Ints]:
        """Return the bits and words in common along each line, of words before, between and after the hits, too."""
        low = np.maximum(lines.first - _BESIDE, self.starts[lines.sources])
        high = np.minimum(lines.last + _BESIDE + 1, self.starts[lines.sources + 1])
        counts = high - low
        line = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + low[line]
        at = np.clip(place + (lines.at - lines.first)[line], 0, len(batch.grams) - 1)
        same = batch.grams[at] == self._all[place]
        hit = np.flatnonzero(_spread(same, line))
        line, place = line[hit], place[hit]
        weights = self._weights[place]
        gained: Floats = np.bincount(line, weights, len(counts)).astype(np.float64)
        hit = _once_each(lines, line, place, gained)
        line, weights = line[hit], weights[hit]
        gained = np.bincount(line, weights, len(counts)).astype(np.float64)
        return gained, np.bincount(line, minlength=len(counts)).astype(np.int64)

    def held(self, batch: Batch, samples: Ints, sources: Ints) -> Held:
        """Return for pairs of a sample and a text how much of the text stands there, in whatever order."""
        counts = self.starts[sources + 1] - self.starts[sources]
        pair = np.repeat(np.arange(len(counts)), counts)
        begin = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) - begin[pair] + self.starts[sources][pair]
        salt = batch.hasher.mixed(np.arange(1, len(batch.samples) + 2).astype(np.uint64))
        wanted = self._all[place] ^ salt[samples[pair]]
        table = Table(np.sort(wanted))
        present = np.zeros(len(table.keys), bool)
        present[table.contains(batch.grams ^ salt[batch.word_samples[: len(batch.grams)]])[1]] = True
        same = present[np.searchsorted(table.keys, wanted)]
        weights = np.where(_spread(same, pair), self._weights[place], 0.0)
        runs = np.add.reduceat(same.astype(np.float64), begin) / np.maximum(counts - SIZE + 1, 1)
        return Held(runs, np.add.reduceat(weights, begin) / np.maximum(self.own[sources], 1.0))


def _spread(same: NDArray[np.bool_], owner: Ints) -> NDArray[np.bool_]:
    """Return which words lie in one of the runs of three that are the same, within their owner."""
    covered = same.copy()
    for step in range(1, SIZE):
        covered[step:] |= same[:-step] & (owner[step:] == owner[:-step])
    return covered


def _once_each(lines: _Lines, line: Ints, place: Ints, gained: Floats) -> Ints:
    """Return which words of lines to count: each place of a text once for each sample, in the line with most bits."""
    samples = lines.samples[line]
    order = np.lexsort((-gained[line], place, samples))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(place[order]) != 0) | (np.diff(samples[order]) != 0)
    return order[fresh]


def _first_of_most(groups: Ints, amounts: Floats) -> Ints:
    """Return the number of the largest amount of each group."""
    group = np.zeros(len(amounts), np.int64)
    group[groups[1:]] = 1
    order = np.lexsort((-amounts, np.cumsum(group)))
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
    _, group, often = np.unique(every, return_inverse=True, return_counts=True)
    kept = np.flatnonzero((every != 0) & (weight >= _SEED_BITS) & (often[group] <= _SEED_TEXTS))
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
