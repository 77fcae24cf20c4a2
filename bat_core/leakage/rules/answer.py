"""Answers: a number in any spelling, or a label, beside all words of its topic. A number alone never fires.

The text of such an item names the topic and the answer: `lumen width of the left duct: 3.82`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.hashing import U64, Ints
from bat_core.leakage.language import texts_batch
from bat_core.leakage.numbers import Reading, read, spellings
from bat_core.leakage.rules.base import Arrays, BatchRule, Raised
from bat_core.leakage.table import Table
from bat_core.model.leakage import HeldoutItem

WINDOW = 16
"""Words between a number and the words of its topic."""
SLACK = 6
"""Other words that may stand among those of the topic."""
_TERMS = 8
_LEAST_TOPIC = 2
_LEAST_DIGITS = 2
_LABEL_WORDS = 3
_SMALL = """
    the an of in on at to and or for with by from per is are was were be as it its this that than upon into a
"""
_STOP = frozenset(_SMALL.split())
_WORDLIKE = re.compile(r"[^\W\d_]{2,}")
_ZERO = np.uint64(0)


class _Answer(NamedTuple):
    """Fingerprints of topic words, and for each number of the answer those of its values."""

    topic: list[int]
    values: list[list[int]]


class AnswerRule(BatchRule):
    """Fires on the numbers of an answer with all words of its topic within sixteen words."""

    name = "answer"
    kinds = frozenset({"answer"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take answers with two topic words or more, and a number of two digits or more or a short label."""
        self._values = self.context.values
        covered, rows = set(), []
        for item in items:
            answer = self._answer(item.text)
            if answer is not None:
                covered.add(item.item_id)
                rows.append((answer, self.context.kind(item)))
        self.load(_laid_out(rows))
        return covered

    def _answer(self, text: str) -> _Answer | None:
        topic_text, colon, label = text.rpartition(": ")
        if colon and not any(char.isdigit() for char in label):
            return self._labelled(topic_text, label)
        batch = texts_batch([text], self.context.hasher)
        numbers: list[tuple[Reading, str]] = []
        for at in batch.numerals.tolist():
            reading = read(batch.word(at))
            if reading.values and reading.digits >= _LEAST_DIGITS:
                numbers.append((reading, batch.text[int(batch.ends[at]) :][:12].decode(errors="replace")))
        chosen = [at for at in range(1, len(batch.starts) - 1) if _topical(batch.word(at))]
        topic = list(dict.fromkeys(batch.stems[chosen].tolist()))
        if not numbers or not _LEAST_TOPIC <= len(topic) <= _TERMS:
            return None
        return _Answer(topic, [[self._values.value(value) for value in spellings(*number)] for number in numbers])

    def _labelled(self, topic_text: str, label: str) -> _Answer | None:
        """Return an answer that is a label of a few words: its longest word stands for a number."""
        batch = texts_batch([topic_text, label], self.context.hasher)
        chosen = [at for at in range(len(batch.starts)) if _topical(batch.word(at))]
        mine = [at for at in chosen if batch.word_samples[at] == 1]
        if not 1 <= len(mine) <= _LABEL_WORDS:
            return None
        longest = max(mine, key=lambda at: len(batch.word(at)))
        topic = list(dict.fromkeys(int(batch.stems[at]) for at in chosen if at != longest))
        enough = len([at for at in chosen if batch.word_samples[at] == 0]) >= _LEAST_TOPIC
        return _Answer(topic, [[int(batch.stems[longest])]]) if enough and len(topic) <= _TERMS else None

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return the fingerprints."""
        return self._arrays

    def load(self, arrays: Arrays) -> None:
        """Take the fingerprints that `dump` returned."""
        self._arrays = dict(arrays)
        self._values = self.context.values
        self._table = Table(arrays["values"].astype(np.uint64))
        self._answers: Ints = arrays["answers"].astype(np.int64)
        self._topics: U64 = arrays["topics"].astype(np.uint64)
        self._kinds: Ints = arrays["kinds"].astype(np.int64)
        self._others: U64 = arrays["others"].astype(np.uint64)
        self._size: Ints = (self._topics != _ZERO).sum(1)

    def examine(self, batch: Batch) -> Iterator[Raised]:
        """Yield a finding for each answer."""
        numbers, values = self._values.of(batch)
        found, labels = self._table.find(values), self._table.find(batch.stems)
        at = np.concatenate([numbers[found.at], labels.at])
        answers = self._answers[np.concatenate([found.rows, labels.rows])]
        if not len(at):
            return
        places = np.clip(at[:, None] + np.arange(-WINDOW, WINDOW + 1), 0, len(batch.stems) - 1)
        near = batch.stems[places]
        near[batch.word_samples[places] != batch.word_samples[at][:, None]] = _ZERO
        complete = np.ones(len(at), bool)
        for term in self._topics[answers].T:
            complete &= (term == _ZERO) | (near == term[:, None]).any(1)
        for row in np.flatnonzero(complete).tolist():
            answer = int(answers[row])
            if self._together(near[row], answer) and self._all_numbers(batch, values, numbers, int(at[row]), answer):
                word = int(at[row])
                start, end, sample = int(batch.starts[word]), int(batch.ends[word]), int(batch.word_samples[word])
                reason = "a held-out answer beside its topic"
                yield Raised(sample, start, end, int(self._kinds[answer]), reason)

    def _together(self, near: U64, answer: int) -> bool:
        """Whether all topic words stand within a few words of each other."""
        topic = self._topics[answer]
        size = int(self._size[answer])
        here = [np.flatnonzero(near == term) for term in topic[:size]]
        span = size + SLACK
        return any(all(((found >= low) & (found < low + span)).any() for found in here) for low in np.concatenate(here))

    def _all_numbers(self, batch: Batch, values: U64, numbers: Ints, at: int, answer: int) -> bool:
        """Whether the other numbers of an answer stand in the window, too."""
        others = self._others[answer]
        near = values[np.abs(numbers - at) <= WINDOW]
        return all(np.isin(options[options != _ZERO], near).any() for options in others if options[0] != _ZERO)


def _topical(word: str) -> bool:
    return _WORDLIKE.fullmatch(word) is not None and word not in _STOP


def _laid_out(rows: Sequence[tuple[_Answer, int]]) -> dict[str, NDArray[np.generic]]:
    values, answers = [], []
    topics = np.zeros((len(rows), _TERMS), np.uint64)
    others = np.zeros((len(rows), 4, 4), np.uint64)
    for number, (answer, _) in enumerate(rows):
        topics[number, : len(answer.topic)] = answer.topic
        values += answer.values[0]
        answers += [number] * len(answer.values[0])
        for place, options in enumerate(answer.values[1:5]):
            others[number, place, : len(options[:4])] = options[:4]
    hashes = np.array(values, np.uint64)
    order = np.argsort(hashes, kind="stable")
    return {
        "values": hashes[order],
        "answers": np.array(answers, np.uint32)[order],
        "topics": topics,
        "others": others,
        "kinds": np.array([kind for _, kind in rows], np.uint8),
    }
