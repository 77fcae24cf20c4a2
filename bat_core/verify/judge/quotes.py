"""Quotes are looked up: a yes without words that stand in the evidence is no evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bat_core.verify.judge.answer import Quote
from bat_core.verify.judge.sources import Source
from bat_core.verify.toolbox.finding import NOTHING, TOLD
from bat_core.verify.toolbox.words import ECHO, echo_share, informative

SHORTEST = 12
"""Characters, white space folded, below which words prove nothing."""
FOLDED = 0.9
"""What a quote is worth that is found with other white space or at another place than the judge says."""


class Found(NamedTuple):
    """How far a quote bears an item out, and where it stands."""

    trust: float
    where: str


def best(quotes: Sequence[Quote], sources: Sequence[Source], criterion: str) -> Found:
    """Return the best of the quotes; trust 0 with the reason if none holds."""
    known = {source.id: source for source in sources}
    found = [look_up(quote, known, criterion) for quote in quotes]
    return max(found, key=lambda one: one.trust, default=Found(NOTHING, "no quote"))


def look_up(quote: Quote, sources: Mapping[str, Source], criterion: str) -> Found:
    """Return what a quote is worth."""
    source = sources.get(quote.source)
    if source is None:
        return Found(NOTHING, f"no source {quote.source!r}")
    words = " ".join(quote.text.split())
    if len(words) < SHORTEST or len(informative(words)) < 2:
        return Found(NOTHING, f"{words[:20]!r} is too short a quote")
    if echo_share(words, [criterion]) > ECHO:
        return Found(NOTHING, "the quote repeats the rubric")
    exact = source.text[quote.start : quote.end] == quote.text
    if not exact and words not in " ".join(source.text.split()):
        return Found(NOTHING, f"{words[:40]!r} does not stand in {quote.source}")
    if source.code and words in " ".join(source.code.split()):
        return Found(TOLD, f"{quote.source}, which its own code spells out")
    return Found(source.trust * (1.0 if exact else FOLDED), f"{quote.source} {words[:40]!r}")
