"""Texts: prompts, reports and worded answers, copied as a whole or in good part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bat_core.leakage.normalise import words_of
from bat_core.leakage.rules.base import FieldRule
from bat_core.leakage.shingles import SIZE, Overlap, ShingleIndex
from bat_core.leakage.view import Field
from bat_core.model.leakage import HeldoutItem, LeakageFinding

RUN = 8
"""Words in one piece that make a copy."""
LONG_RUN = 16
"""Words in one piece that make a copy however long the text is."""
BLOCK_SHARE = 0.25
REVIEW_SHARE = 0.125
BROKEN_SHARE = 0.5
"""Shares of a text: in one piece, for a look by someone, and in smaller pieces."""
ANSWER_SHARE = 0.6
"""Share of a worded answer: less of it is no more than its topic."""
_LEAST_WORDS = 8
_LEAST_ANSWER = 12


class TextRule(FieldRule):
    """Fires on a run of eight words that is a fair share of a text, and on half a text in smaller pieces.

    Words that other tasks share count only where half of the text's own words are there too.
    """

    name = "text"
    kinds = frozenset({"text", "answer"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take texts of 8 words or more and answers of 12 or more, unless other tasks have the same words."""
        long = []
        for item in items:
            if len(words_of(item.text)) >= (_LEAST_ANSWER if item.kind == "answer" else _LEAST_WORDS):
                long.append(item)
        self._shingles = ShingleIndex()
        return self._shingles.add(long, least=RUN - SIZE + 1)

    def search(self, field: Field) -> Iterator[LeakageFinding]:
        """Yield a finding for each text of which a field holds enough."""
        for hit in self._shingles.search(field.views):
            kind = hit.source.kind
            if _copied(hit):
                yield self.finding(field, hit.start, hit.end, kind, "a copy of a held-out text")
            elif kind == "text" and hit.run >= RUN and hit.share >= REVIEW_SHARE:
                yield self.finding(field, hit.start, hit.end, kind, "eight words of a held-out text", "review")


def _copied(hit: Overlap) -> bool:
    if hit.source.kind == "answer":
        return hit.share >= ANSWER_SHARE
    whole = hit.own_share >= BROKEN_SHARE and hit.whole_share >= BROKEN_SHARE
    return whole or hit.run >= LONG_RUN or (hit.run >= RUN and hit.share >= BLOCK_SHARE)
