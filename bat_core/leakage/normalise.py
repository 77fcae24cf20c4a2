"""Folding of texts, character by character: no marks, no invisible characters, no look-alikes.

Decomposition comes first, confusables after it (else full-width digits break), case last. What is neither a letter nor
a digit outside of ASCII becomes a space. Offsets lead back to the text as given.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate

from bat_core.leakage.lookalikes import LOOKALIKES

MARK = "\x01"
"""Stands between samples; in a text of a sample it is a space."""

_ODD = re.compile(r"[^\x00-\x7f]|\x01")
_NOT_ALNUM = re.compile(r"[\W_]+")
_INVISIBLE = {"Mn", "Me", "Cf"}
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f")
_MINUS = frozenset("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d")


class _FoldTable(dict[str, str]):
    """Folding of single characters, filled as they are met."""

    def __missing__(self, char: str) -> str:
        folded = "-" if char in _MINUS else "".join(map(_part, unicodedata.normalize("NFKD", char))).casefold()
        self[char] = folded
        return folded


def _part(part: str) -> str:
    """Return what one character of a decomposition becomes."""
    category = unicodedata.category(part)
    if category in _INVISIBLE or part in _FILLERS:
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(part))
    part = LOOKALIKES.get(part, part)
    return part if (part.isascii() and part != MARK) or category[0] in "LN" else " "


_FOLD = _FoldTable()


def folded(text: str) -> str:
    """Return a text folded, but for the case of ASCII letters."""
    if text.isascii() and MARK not in text:
        return text
    return _ODD.sub(lambda match: _FOLD[match.group()], text)


def origin(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span in a text of a non-empty span of bytes in its folded form."""
    if text.isascii():
        return start, end
    lengths = (len(folded(char).encode()) for char in text)
    stops = list(accumulate(lengths))
    first = next((number for number, stop in enumerate(stops) if stop > start), len(text))
    last = next((number for number, stop in enumerate(stops) if stop >= end), len(text) - 1)
    return min(first, last), last + 1


def squash(text: str) -> str:
    """Return only the letters and digits of a text, folded, in lower case."""
    return _NOT_ALNUM.sub("", folded(text)).lower()
