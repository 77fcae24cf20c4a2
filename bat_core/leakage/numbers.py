"""Numbers in text, in the spellings that mean the same: 0.873, .873, 0,873, 87.3 %, 8.73e-1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

_NUMBER = re.compile(r"[0-9][0-9.,]*(?:e[+-]?[0-9]{1,2})?")
_PERCENT = re.compile(r"\s?%")
_LONGEST = 24
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_PLAIN = re.compile(r"[0-9]*\.?[0-9]*(?:e[+-]?[0-9]+)?")


class Number(NamedTuple):
    """A number in folded text.

    Attributes:
        values: What it can mean, in canonical decimals; `1,234` means two things.
        digits: Significant digits.
        percent: Whether a percent sign follows.
        start, end: Span, without the percent sign.
    """

    values: frozenset[str]
    digits: int
    percent: bool
    start: int
    end: int


def numbers_in(folded: str) -> Iterator[Number]:
    """Yield the numbers of a folded text; digits within a word are none."""
    # The pattern begins with a plain character class, which the engine finds fast; neighbours are checked here.
    for match in _NUMBER.finditer(folded):
        start, end = match.span()
        if start and folded[start - 1] in ".,":
            start -= 1
        if start and (folded[start - 1].isalnum() or folded[start - 1] == "_"):
            continue
        spelled = folded[start:end].rstrip(".,")
        end = start + len(spelled)
        if len(spelled) > _LONGEST or (end < len(folded) and (folded[end].isalnum() or folded[end] == "_")):
            continue
        values, digits = _read(spelled)
        if values:
            yield Number(values, digits, _PERCENT.match(folded, end) is not None, start, end)


def spellings(number: Number) -> frozenset[str]:
    """Return the values by which a held-out number may be spelled: also as a percentage, or as a fraction."""
    values = set(number.values)
    for value in number.values:
        exact = Decimal(value)
        if number.percent:
            values.add(_canonical(exact / 100))
        elif 0 < exact <= 1:
            values.add(_canonical(exact * 100))
    return frozenset(values)


@lru_cache(maxsize=1 << 16)
def _read(spelled: str) -> tuple[frozenset[str], int]:
    """Return what a spelling can mean, and its significant digits."""
    values = frozenset(_canonical(Decimal(plain)) for plain in _readings(spelled))
    return values, len(re.sub(r"e.*|[^0-9]", "", spelled).lstrip("0"))


def _readings(spelled: str) -> set[str]:
    """Return a number's spelling with a decimal point, once for each thing the comma can mean."""
    readings = {spelled}
    if "," in spelled:
        readings.add(spelled.replace(",", "."))
        if _THOUSANDS.fullmatch(spelled):
            readings.add(spelled.replace(",", ""))
    return {text for text in readings if _PLAIN.fullmatch(text) and any(char.isdigit() for char in text)}


def _canonical(value: Decimal) -> str:
    return format(value.normalize(), "f")
