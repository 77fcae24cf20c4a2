"""Answers: a number in any spelling beside all words of its topic. A number alone never fires.

The text of such an item names the topic and the number: `lumen width of the left duct: 3.82`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bat_core.leakage.normalise import Views
from bat_core.leakage.numbers import Number, numbers_in, spellings
from bat_core.leakage.rules.base import FieldRule
from bat_core.leakage.view import Field
from bat_core.model.leakage import HeldoutItem, LeakageFinding

WINDOW = 16
_LEAST_TOPIC = 2
_LEAST_DIGITS = 2
_ARTICLES = frozenset({"the", "an", "of", "in", "on", "at", "to", "and", "or", "for", "with", "by", "from", "per"})
_STOP = _ARTICLES | {"is", "are", "was", "were", "be", "as", "it", "its", "this", "that", "than", "upon", "into"}
_WORDLIKE = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True)
class _Answer:
    """Topic words, and for each number of the answer the values that mean it."""

    topic: frozenset[str]
    values: tuple[frozenset[str], ...]


class AnswerRule(FieldRule):
    """Fires on the numbers of an answer with all words of its topic within sixteen words."""

    name = "answer"
    kinds = frozenset({"answer"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take answers with two topic words or more and a number of two digits or more."""
        covered = set()
        self._by_value: dict[str, list[_Answer]] = {}
        for item in items:
            views = Views(item.text)
            numbers = [number for number in numbers_in(views.folded) if number.digits >= _LEAST_DIGITS]
            topic = _topic(views.words)
            if not numbers or len(topic) < _LEAST_TOPIC:
                continue
            covered.add(item.item_id)
            answer = _Answer(topic, tuple(spellings(number) for number in numbers))
            for value in answer.values[0]:
                self._by_value.setdefault(value, []).append(answer)
        return covered

    def search(self, field: Field) -> Iterator[LeakageFinding]:
        """Yield a finding for each answer in a field."""
        views = field.views
        numbers = list(numbers_in(views.folded))
        for number in numbers:
            answers = [answer for value in number.values for answer in self._by_value.get(value, ())]
            if not answers:
                continue
            words, values = _around(views, number, numbers)
            for answer in dict.fromkeys(answers):
                if answer.topic <= words and all(options & values for options in answer.values):
                    yield self.finding(field, number.start, number.end, "answer", "a held-out answer beside its topic")


def _topic(words: Sequence[str]) -> frozenset[str]:
    return frozenset(_stem(word) for word in words if _WORDLIKE.fullmatch(word) and word not in _STOP)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") else word


def _around(views: Views, number: Number, numbers: Sequence[Number]) -> tuple[set[str], set[str]]:
    """Return words and values within the window around a number."""
    spans = views.word_spans
    at = bisect_left(spans, (number.start, number.start))
    low, high = max(0, at - WINDOW), min(len(spans), at + WINDOW + 1)
    words = {_stem(word) for word in views.words[low:high]}
    start, end = spans[low][0] - 1 if spans else 0, spans[high - 1][1] if spans else 0
    first = bisect_left(numbers, start, key=lambda other: other.start)
    values = {value for other in numbers[first : first + high - low] if other.start < end for value in other.values}
    return words, values
