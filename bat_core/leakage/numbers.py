"""What a number word can mean, in canonical decimals: 0.873, .873, 0,873, 8.73e-1 are the same number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

_LONGEST = 24
_NUMBER = re.compile(r"[0-9.,]+(?:e[+-]?[0-9]{1,2})?")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_PLAIN = re.compile(r"[0-9]*\.?[0-9]*(?:e[+-]?[0-9]+)?")
_PERCENT = ("%", "percent", "per cent", "prozent", "pct")
_UNITS = {
    "mm": (-1, "cm"),
    "cm": (1, "mm"),
    "ml": (-3, "l"),
    "l": (3, "ml"),
    "cc": (-3, "l"),
    "g": (-3, "kg"),
    "kg": (3, "g"),
    "ms": (-3, "s"),
    "s": (3, "ms"),
}


class Reading(NamedTuple):
    """What a number word can mean.

    Attributes:
        values: Canonical decimals; `1,234` means two things.
        digits: Significant digits.
    """

    values: tuple[str, ...]
    digits: int


def read(word: str) -> Reading:
    """Return what a word means as a number; no values if it is none."""
    if len(word) > _LONGEST or not _NUMBER.fullmatch(word):
        return Reading((), 0)
    values = tuple(dict.fromkeys(canonical(Decimal(plain)) for plain in _readings(word)))
    return Reading(values, len(re.sub(r"e.*|[^0-9]", "", word).lstrip("0")))


def _readings(word: str) -> Iterator[str]:
    """Yield a number's spelling with a decimal point, once for each thing the comma can mean."""
    for plain in (word, word.replace(",", "."), word.replace(",", "") if _THOUSANDS.fullmatch(word) else ""):
        if _PLAIN.fullmatch(plain) and any(char.isdigit() for char in plain.split("e")[0]):
            yield plain


def spellings(reading: Reading, after: str) -> tuple[str, ...]:
    """Return the values by which a held-out number may be spelled: as a fraction, a percentage, in another unit.

    Args:
        reading: The number.
        after: The text that follows it.
    """
    values = dict.fromkeys(reading.values)
    following = after.lstrip()[:12].lower()
    unit = re.match(r"[a-z]*", following)
    for value in reading.values:
        exact = Decimal(value)
        if following.startswith(_PERCENT):
            values[canonical(exact / 100)] = None
        elif unit and unit.group() in _UNITS:
            values[canonical(exact.scaleb(_UNITS[unit.group()][0]))] = None
        elif 0 < exact <= 1:
            values[canonical(exact * 100)] = None
    return tuple(values)


def canonical(value: Decimal) -> str:
    """Return the one spelling of a value."""
    return format(value.normalize(), "f")
