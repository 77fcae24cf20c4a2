"""Fact echo: whether a call's output holds facts that its code did not spell out.

Who prints the voxel counts of a file without having them in the code has read the file. A long listing of
numbers proves nothing, and a code that spells out the facts itself taints what later calls print.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bat_core.model.receipt import Receipt
from bat_core.verify.toolbox.ledger import Event

LONGEST = 4000
MOST_NUMBERS = 64
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
WORD = re.compile(r"[A-Za-z0-9_]+")

Fact = str | float | int


@dataclass(frozen=True)
class Said:
    """The numbers, sorted, and words of a text."""

    numbers: tuple[float, ...]
    words: frozenset[str]

    def holds(self, fact: Fact) -> bool:
        """Whether the text holds `fact`: a number within rounding, a word exactly or as the head of a hash."""
        if isinstance(fact, str):
            return fact in self.words or (len(fact) >= 6 and any(word.startswith(fact) for word in self.words))
        slack = 0.06 if isinstance(fact, float) else 1e-6
        place = bisect_left(self.numbers, fact - slack)
        return place < len(self.numbers) and self.numbers[place] <= fact + slack


def said(text: str) -> Said:
    """Return what `text` says; nothing where it is a listing."""
    head = text[:LONGEST]
    numbers = tuple(sorted(float(number) for number in NUMBER.findall(head)))
    if len(numbers) > MOST_NUMBERS:
        return Said((), frozenset())
    return Said(numbers, frozenset(WORD.findall(head)))


@dataclass(frozen=True)
class Call:
    """A call of the ledger: what its code spells, what it printed, and whether it ran to its end."""

    code: Said
    out: Said
    fine: bool


def calls_of(ledger: Iterable[Receipt | Event]) -> tuple[Call, ...]:
    """Return the ledger in this form."""
    return tuple(Call(_all_of(one.code), said(one.stdout), _ran(one)) for one in ledger)


def echoed(calls: Sequence[Call], facts: Sequence[Fact], need: int, must: Sequence[Fact] = ()) -> bool:
    """Whether some call printed `need` of `facts` and all of `must` without anybody having spelt them out."""
    wanted = [*facts, *(fact for fact in must if fact not in facts)]
    for call in calls:
        if sum(call.code.holds(fact) for fact in wanted) >= max(need, len(must)):
            return False
        shown = [fact for fact in wanted if call.out.holds(fact) and not call.code.holds(fact)]
        if call.fine and len(shown) >= need and all(fact in shown for fact in must):
            return True
    return False


def forged(calls: Sequence[Call], facts: Sequence[Fact], need: int) -> bool:
    """Whether some call spells out the facts that it prints: a made-up observation."""
    return any(sum(call.code.holds(fact) and call.out.holds(fact) for fact in facts) >= need for call in calls)


def _all_of(code: str) -> Said:
    """Return what a code spells; a listing counts in full here."""
    head = code[: 8 * LONGEST]
    return Said(tuple(sorted(float(number) for number in NUMBER.findall(head))), frozenset(WORD.findall(head)))


def _ran(one: Receipt | Event) -> bool:
    return one.ok if isinstance(one, Event) else one.status == "exited" and one.rc == 0
