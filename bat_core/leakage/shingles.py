"""Overlap of texts in runs of words: which share of a held-out text stands in a field, and how much in one piece.

Runs of words that texts of several tasks share are boilerplate, not leakage: they aren't indexed.
"""

from __future__ import annotations

import codecs
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bat_core.leakage.normalise import Views, words_of
from bat_core.model.leakage import HeldoutItem

SIZE = 5
_WEAK_VARIETY = 3
_MAX_PLACES = 8

_Gram = tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A held-out text in one form (as given, reversed, rot13)."""

    kind: str
    length: int


class Overlap(NamedTuple):
    """How a field overlaps a held-out text.

    Attributes:
        source: The held-out text.
        run: Words of the longest unbroken run.
        share: Share of the text's words that the field holds, in runs of `SIZE` at least.
        words: How many words these are.
        start, end: Span of the longest run in the folded text.
    """

    source: Source
    run: int
    share: float
    words: int
    start: int
    end: int


class ShingleIndex:
    """Held-out texts by their runs of `SIZE` words."""

    def __init__(self) -> None:
        self._places: dict[_Gram, list[tuple[Source, int]]] = {}

    def add(self, items: Sequence[HeldoutItem], least: int) -> set[str]:
        """Index texts; return the ids of those with at least `least` runs of their own."""
        owner: dict[_Gram, str | None] = {}
        for item in items:
            for gram in set(_grams(words_of(item.text))):
                owner[gram] = item.task if owner.get(gram, item.task) == item.task else None
        shared = {gram for gram, task in owner.items() if task is None}
        covered = set()
        for item in items:
            own = {gram for gram in _grams(words_of(item.text)) if gram not in shared and _telling(gram)}
            if len(own) >= least:
                covered.add(item.item_id)
                self._index(item, shared)
        return covered

    def _index(self, item: HeldoutItem, shared: set[_Gram]) -> None:
        forms = {item.text: shared, item.text[::-1]: set(), codecs.encode(item.text, "rot13"): set()}
        for form, refused in forms.items():
            words = words_of(form)
            source = Source(item.kind, len(words))
            grams = list(_grams(words))
            often = Counter(grams)
            for position, gram in enumerate(grams):
                if gram not in refused and often[gram] <= _MAX_PLACES and _telling(gram):
                    self._places.setdefault(gram, []).append((source, position))

    def search(self, views: Views) -> Iterator[Overlap]:
        """Yield one overlap for each held-out text of which a field holds anything."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        sources: dict[int, Source] = {}
        for at, gram in enumerate(_grams(views.words)):
            for source, position in self._places.get(gram, ()):
                found[id(source)].append((at, position))
                sources[id(source)] = source
        for key, pairs in found.items():
            yield _overlap(sources[key], pairs, views)


def _grams(words: Sequence[str]) -> Iterator[_Gram]:
    return zip(*(words[i:] for i in range(SIZE)), strict=False)


def _telling(gram: _Gram) -> bool:
    """Whether a run says anything: not a row of the same few words."""
    return len(set(gram)) >= _WEAK_VARIETY


def _overlap(source: Source, pairs: list[tuple[int, int]], views: Views) -> Overlap:
    covered = {position + i for _, position in pairs for i in range(SIZE)}
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
    run = best + SIZE - 1
    spans = views.word_spans
    return Overlap(
        source, run, len(covered) / source.length, len(covered), spans[best_at][0], spans[best_at + run - 1][1]
    )
