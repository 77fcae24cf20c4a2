"""Two views of a text that survive disguise: words, and alphanumerics squashed together.

Folding goes character by character, so that every offset in a view leads back to the text as given.
Decomposition comes first, confusables after it (else full-width digits break), case last.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from bat_core.leakage.lookalikes import LOOKALIKES

GRAM = 8
"""Length of the slices by which squashed texts are looked up; no needle is shorter."""

_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_ALNUM = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[a-z](?=[A-Z])")
_INVISIBLE = {"Mn", "Me", "Cf"}
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f")


class _FoldTable(dict[str, str]):
    """Folding of single characters, filled as they are met."""

    def __missing__(self, char: str) -> str:
        kept = []
        for part in unicodedata.normalize("NFKD", char):
            category = unicodedata.category(part)
            if category in _INVISIBLE or part in _FILLERS:
                continue
            kept.append(str(unicodedata.decimal(part)) if category == "Nd" else LOOKALIKES.get(part, part))
        folded = "".join(kept).casefold()
        self[char] = folded
        return folded


_FOLD = _FoldTable()


class Views:
    """A text, folded, with its words and its squashed form; each is computed when first asked for.

    Attributes:
        raw: The text as given.
        folded: Its folded form: no case, no marks, no look-alikes.
    """

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self._origin: array[int] | None = None
        if raw.isascii():
            self.folded = raw.lower()
            return
        pieces = [_FOLD[char] for char in raw]
        self.folded = "".join(pieces)
        self._origin = array("I")
        for position, piece in enumerate(pieces):
            self._origin.extend([position] * len(piece))

    @cached_property
    def words(self) -> list[str]:
        """Words in order; a point or comma between digits belongs to the number."""
        return _WORD.findall(self.folded)

    @cached_property
    def word_spans(self) -> list[tuple[int, int]]:
        """Where each word stands in the folded text."""
        return [match.span() for match in _WORD.finditer(self.folded)]

    @cached_property
    def squashed(self) -> str:
        """Only letters and digits."""
        return "".join(_ALNUM.findall(self.folded))

    @cached_property
    def grams(self) -> set[str]:
        """Every slice of `GRAM` characters of the squashed form."""
        text = self.squashed
        return {text[i : i + GRAM] for i in range(len(text) - GRAM + 1)}

    @cached_property
    def start_grams(self) -> set[str]:
        """The slices of `GRAM` characters that begin where a name can begin."""
        text, starts = self.squashed, list(self._runs[0])
        if self._origin is None:
            squashed, folded = self._runs
            for match in _HUMP.finditer(self.raw):
                run = bisect_right(folded, match.end()) - 1
                starts.append(squashed[run] + match.end() - folded[run])
        return {text[i : i + GRAM] for i in starts}

    @cached_property
    def _runs(self) -> tuple[list[int], list[int]]:
        """Starts of the alphanumeric runs: in the squashed form and in the folded one."""
        folded = [match.start() for match in _ALNUM.finditer(self.folded)]
        lengths = map(len, _ALNUM.findall(self.folded))
        return list(accumulate(lengths, initial=0))[: len(folded)], folded

    def unsquash(self, position: int) -> int:
        """Return where a character of the squashed form stands in the folded text."""
        squashed, folded = self._runs
        run = bisect_right(squashed, position) - 1
        return folded[run] + position - squashed[run]

    def to_raw(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the text as given of a non-empty span of the folded text."""
        if self._origin is None:
            return start, end
        return self._origin[start], self._origin[end - 1] + 1


def words_of(text: str) -> Sequence[str]:
    """Return the words of a text."""
    return Views(text).words


def squash(text: str) -> str:
    """Return only the letters and digits of a text, folded."""
    return Views(text).squashed
