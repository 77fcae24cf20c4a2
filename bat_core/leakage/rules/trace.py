"""Traces: logs, commands and observations of a held-out run, of which a passage is enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bat_core.leakage.normalise import words_of
from bat_core.leakage.rules.base import FieldRule
from bat_core.leakage.shingles import SIZE, ShingleIndex
from bat_core.leakage.view import Field
from bat_core.model.leakage import HeldoutItem, LeakageFinding

RUN = 10
WORDS = 16
SHARE = 0.3
_LEAST_WORDS = 10


class TraceRule(FieldRule):
    """Fires on ten words in one piece if sixteen of the trace's words are there, and on a third of it in pieces."""

    name = "trace"
    kinds = frozenset({"trace"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take traces of 10 words or more, unless other tasks have the same words."""
        self._shingles = ShingleIndex()
        return self._shingles.add(
            [item for item in items if len(words_of(item.text)) >= _LEAST_WORDS], least=RUN - SIZE + 1
        )

    def search(self, field: Field) -> Iterator[LeakageFinding]:
        """Yield a finding for each trace of which a field holds a passage."""
        for hit in self._shingles.search(field.views):
            enough = hit.words >= min(WORDS, len(hit.source.own))
            if enough and (hit.run >= RUN or hit.share >= SHARE):
                yield self.finding(field, hit.start, hit.end, hit.source.kind, "a passage of a held-out trace")
