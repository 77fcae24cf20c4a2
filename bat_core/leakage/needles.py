"""Many exact needles at once in squashed text, with the boundaries of the raw text respected.

A look-up is by the needle's first `GRAM` characters against the set of slices of the text, so its cost hardly
depends on the number of needles.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bat_core.leakage.normalise import GRAM, Views

_DIGEST = 32
_FEW = 64
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class Needle:
    """A squashed text to find.

    Attributes:
        text: At least `GRAM` letters and digits.
        kind: Kind of the held-out item.
        bounded: Must not begin or end inside a number or name; else it counts anywhere.
        prefix: A hexadecimal digest, which also counts when cut short (at least `GRAM` digits, then a boundary).
    """

    text: str
    kind: str
    bounded: bool = True
    prefix: bool = False


class Hit(NamedTuple):
    """A needle and its span in the folded text."""

    needle: Needle
    start: int
    end: int


class NeedleIndex:
    """Needles by their first slice."""

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._bounded: dict[str, list[Needle]] = {}
        self._free: dict[str, list[Needle]] = {}
        for needle in dict.fromkeys(needles):
            group = self._bounded if needle.bounded else self._free
            group.setdefault(needle.text[:GRAM], []).append(needle)
        self._bounded_grams, self._free_grams = set(self._bounded), set(self._free)

    def search(self, views: Views) -> Iterator[Hit]:
        """Yield the first accepted place of each needle."""
        for gram in self._bounded_grams & views.start_grams if self._bounded else ():
            yield from _hits(self._bounded[gram], gram, views)
        for gram in self._present(views) if self._free else ():
            yield from _hits(self._free[gram], gram, views)

    def _present(self, views: Views) -> Iterable[str]:
        """Return slices of free needles that stand anywhere; for a few needles, plain search is the fastest."""
        if len(self._free_grams) <= _FEW:
            return [gram for gram in self._free_grams if gram in views.squashed]
        return self._free_grams & views.grams


def variants(squashed: str) -> set[str]:
    """Return a squashed text forwards, backwards and in rot13."""
    return {squashed, squashed[::-1], codecs.encode(squashed, "rot13")}


def is_hex(squashed: str) -> bool:
    """Whether a squashed text is a digest: 32 or more hexadecimal digits."""
    return len(squashed) >= _DIGEST and _HEX.issuperset(squashed)


def _hits(needles: Iterable[Needle], gram: str, views: Views) -> Iterator[Hit]:
    for needle in needles:
        hit = _first(needle, gram, views)
        if hit is not None:
            yield hit


def _first(needle: Needle, gram: str, views: Views) -> Hit | None:
    text, at = views.squashed, views.squashed.find(gram)
    while at >= 0:
        length = _matched(needle, text, at)
        if length:
            start, end = views.unsquash(at), views.unsquash(at + length - 1) + 1
            if not needle.bounded or (_boundary(views, start - 1, start) and _boundary(views, end - 1, end)):
                return Hit(needle, start, end)
        at = text.find(gram, at + 1)
    return None


def _matched(needle: Needle, text: str, at: int) -> int:
    """Return how many characters of a needle stand at `at`, 0 if not enough of them."""
    if text.startswith(needle.text, at):
        return len(needle.text)
    if not needle.prefix:
        return 0
    length = GRAM
    while length < len(needle.text) and text[at + length : at + length + 1] == needle.text[length]:
        length += 1
    mixed = not needle.text[:length].isdigit() and not needle.text[:length].isalpha()
    return length if mixed else 0


def _boundary(views: Views, left: int, right: int) -> bool:
    """Whether there is a boundary between two neighbours: a separator, or the hump of camel case."""
    folded = views.folded
    if left < 0 or right >= len(folded) or not (folded[left].isalnum() and folded[right].isalnum()):
        return True
    before, after = (views.raw[views.to_raw(at, at + 1)[0]] for at in (left, right))
    return before.islower() and after.isupper()
