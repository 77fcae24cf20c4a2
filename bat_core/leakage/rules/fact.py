"""Facts: numbers with a word near them, so many of one held-out text that chance can't bring them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.facts import FactIndex, index_facts
from bat_core.leakage.language import searched_bits
from bat_core.leakage.rules.base import Arrays, BatchRule, Raised
from bat_core.model.leakage import HeldoutItem

BLOCK_BITS = 25.0
"""Bits of facts that make a leak, before those for the number of tasks searched."""
_LEAST = 3
_USUAL_NUMBERS = 64
"""Numbers in a sample; of more of them, more facts must agree."""


class FactRule(BatchRule):
    """Fires on three or more facts of one text, in whatever words and order."""

    name = "fact"
    kinds = frozenset({"text", "trace", "answer"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take texts with three numbers or more that stand beside words."""
        kinds = [self.context.kind(item) for item in items]
        self._facts, covered = index_facts(items, kinds, self.context)
        self._searched = searched_bits(len({item.task for item in items}))
        self._values = self.context.values
        return covered

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return the fingerprints."""
        return {**self._facts.arrays, "searched": np.array([self._searched])}

    def load(self, arrays: Arrays) -> None:
        """Take the fingerprints that `dump` returned."""
        self._facts = FactIndex(arrays)
        self._searched = float(arrays["searched"][0])
        self._values = self.context.values

    def examine(self, batch: Batch) -> Iterator[Raised]:
        """Yield a finding for each text of which a sample holds enough facts."""
        found = self._facts.sums(batch, self._values)
        if found is None:
            return
        numbers = np.bincount(np.maximum(batch.word_samples[batch.numerals], 0), minlength=len(batch.samples))
        more = _LEAST * np.log2(np.maximum(numbers / _USUAL_NUMBERS, 1.0))
        enough = BLOCK_BITS + self._searched + more[found.samples]
        for at in np.flatnonzero((found.facts >= _LEAST) & (found.bits >= enough)).tolist():
            word = int(found.at[at])
            kind = int(self._facts.kinds[found.sources[at]])
            start, end = int(batch.starts[word]), int(batch.ends[word])
            yield Raised(int(found.samples[at]), start, end, kind, "facts of a held-out text in other words")
