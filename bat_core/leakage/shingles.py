"""Overlap of texts in runs of words: which share of a held-out text stands in a field, and how much in one piece.

Runs of words that texts of several tasks share are boilerplate, not leakage: they aren't indexed.
"""

from __future__ import annotations

import codecs
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from bat_core.leakage.normalise import Views, words_of
from bat_core.model.leakage import HeldoutItem

SIZE = 5
_LEAST_VARIETY = 3
_MAX_PLACES = 8

_Gram = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """A held-out text in one form (as given, reversed, rot13).

    Attributes:
        kind: Kind of the held-out item.
        grams: All its runs of `SIZE` words, in order.
        own: Positions of those that no other task has.
    """

    kind: str
    grams: tuple[_Gram, ...]
    own: frozenset[int]


class Overlap(NamedTuple):
    """How a field overlaps a held-out text.

    Attributes:
        source: The held-out text.
        run: Words of the longest unbroken run of the text's own words.
        words: How many of its own words the field holds, in runs of `SIZE` at least.
        share: These, as a share of all words of the text.
        own_share: Own runs that the field holds, as a share of the text's own runs.
        whole_share: Runs that the field holds, own or not, as a share of all.
        start, end: Span of the longest run in the folded text.
    """

    source: Source
    run: int
    words: int
    share: float
    own_share: float
    whole_share: float
    start: int
    end: int


class ShingleIndex:
    """Held-out texts by their runs of `SIZE` words."""

    def __init__(self) -> None:
        self._places: dict[_Gram, list[tuple[Source, int]]] = {}

    def add(self, items: Sequence[HeldoutItem], least: int) -> set[str]:
        """Index texts; return the ids of those with at least `least` runs of their own."""
        shared = _shared(items)
        covered = set()
        for item in items:
            plain = self._index(item.kind, item.text, shared)
            if len({plain.grams[position] for position in plain.own}) >= least:
                covered.add(item.item_id)
                self._index(item.kind, item.text[::-1], frozenset())
                self._index(item.kind, codecs.encode(item.text, "rot13"), frozenset())
        return covered

    def _index(self, kind: str, text: str, shared: Set[_Gram]) -> Source:
        grams = tuple(_grams(words_of(text)))
        often = Counter(grams)
        own = [
            position
            for position, gram in enumerate(grams)
            if gram not in shared and often[gram] <= _MAX_PLACES and len(set(gram)) >= _LEAST_VARIETY
        ]
        source = Source(kind, grams, frozenset(own))
        for position in own:
            self._places.setdefault(grams[position], []).append((source, position))
        return source

    def search(self, views: Views) -> Iterator[Overlap]:
        """Yield one overlap for each held-out text of whose own words a field holds anything."""
        places = self._places
        hits = [(at, gram) for at, gram in enumerate(_grams(views.words)) if gram in places]
        found: dict[Source, list[tuple[int, int]]] = defaultdict(list)
        for at, gram in hits:
            for source, position in places[gram]:
                found[source].append((at, position))
        if found:
            present = set(_grams(views.words))
            for source, pairs in found.items():
                yield _overlap(source, pairs, present, views)


def _grams(words: Sequence[str]) -> Iterator[_Gram]:
    return zip(*(words[i:] for i in range(SIZE)), strict=False)


def _shared(items: Sequence[HeldoutItem]) -> set[_Gram]:
    """Return the runs that stand in texts of more than one task."""
    owner: dict[_Gram, str | None] = {}
    for item in items:
        for gram in set(_grams(words_of(item.text))):
            owner[gram] = item.task if owner.get(gram, item.task) == item.task else None
    return {gram for gram, task in owner.items() if task is None}


def _overlap(source: Source, pairs: list[tuple[int, int]], present: Set[_Gram], views: Views) -> Overlap:
    own = {position for _, position in pairs}
    words = len({position + i for position in own for i in range(SIZE)})
    best, at = _longest(pairs)
    run = best + SIZE - 1
    return Overlap(
        source=source,
        run=run,
        words=words,
        share=words / (len(source.grams) + SIZE - 1),
        own_share=len(own) / len(source.own),
        whole_share=sum(gram in present for gram in source.grams) / len(source.grams),
        start=views.word_spans[at][0],
        end=views.word_spans[at + run - 1][1],
    )


def _longest(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    """Return how many pairs follow each other at most, and where in the field they begin."""
    present = set(pairs)
    best, best_at = 0, 0
    for at, position in pairs:
        if (at - 1, position - 1) in present:
            continue
        length = 1
        while (at + length, position + length) in present:
            length += 1
        if length > best:
            best, best_at = length, at
    return best, best_at
