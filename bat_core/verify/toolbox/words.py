"""Content gate: text that says nothing, says the rubric again, or hides something: facts, never a verdict."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

FEWEST = 12
"""Informative words below which a text can't bear anything out."""
ECHO = 0.6
"""Share of a text's word triples that may stand in the rubric."""
MASTER_KEYS = re.compile(
    r"^\W*(?:thought process|reasoning process|let'?s solve this(?: problem)?(?: step by step)?|solution|answer"
    r"|explanation|detail|steps?|final answer|result)?\W*$",
    re.I,
)
_FILLER = """
a all also an and any are as at be been best but by can did do each every everything for from generally go greatest
has have here how i if in into is it its may more most must no none not of on one or our over per run should single so
some such than that the their them then there these they this to together up use used was we were what when where which
will with without you your very
"""
STOPWORDS = frozenset(_FILLER.split())
_BIDI_OPEN, _BIDI_CLOSE = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068", "\u202c\u2069"
_HIDDEN = re.compile(f"[{_BIDI_OPEN}][^{_BIDI_CLOSE}\n]*[{_BIDI_CLOSE}]?")
_UNSEEN = ("Cc", "Cf", "Co", "Cn", "Cs")
_WORD = re.compile(r"[^\W_]+", re.UNICODE)


def visible(text: str) -> str:
    """Return what a reader sees: no hidden characters, nothing that is shown in another order."""
    text = _HIDDEN.sub(" ", text)
    return "".join(
        one for one in text if one in "\n\t" or unicodedata.category(one) not in ("Cc", "Cf", "Co", "Cn", "Cs")
    )


def hides(text: str) -> bool:
    """Return whether a text holds characters that a reader does not see."""
    return visible(text) != text


def informative(text: str) -> list[str]:
    """Return the distinct words of a text that may carry something: no filler, no word twice."""
    words = (word.lower() for word in _WORD.findall(visible(text)))
    return list(dict.fromkeys(word for word in words if word not in STOPWORDS and (len(word) > 1 or word.isdigit())))


def echo_share(text: str, criteria: Iterable[str]) -> float:
    """Return the share of the text's word triples that stand in the criteria."""
    triples = _triples(text)
    known = {triple for one in criteria for triple in _triples(one)}
    return sum(triple in known for triple in triples) / len(triples) if triples else 0.0


def without_echo(text: str, criteria: Iterable[str]) -> str:
    """Return the text without the sentences and lines that repeat the criteria."""
    wanted = list(criteria)
    parts = re.split(r"(?<=[.!?])\s+|\n", visible(text))
    return "\n".join(part for part in parts if echo_share(part, wanted) <= ECHO)


def empty_of(text: str, criteria: Iterable[str], fewest: int = FEWEST) -> str:
    """Return why a text can't bear anything out, empty if it may."""
    seen = visible(text)
    if not seen.strip():
        return "the text is empty"
    if MASTER_KEYS.match(seen):
        return "the text is a phrase without content"
    if echo_share(seen, criteria) > ECHO:
        return "the text repeats the rubric"
    count = len(informative(seen))
    return f"the text has {count} informative words, fewer than {fewest}" if count < fewest else ""


def _triples(text: str) -> list[tuple[str, ...]]:
    words = [word.lower() for word in _WORD.findall(text)]
    return [tuple(words[i : i + 3]) for i in range(max(0, len(words) - 2))]
