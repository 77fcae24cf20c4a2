"""What the rules for texts and for traces share: copied runs of words, weighed by their surprisal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.hashing import Ints
from bat_core.leakage.language import searched_bits
from bat_core.leakage.rules.base import Arrays, BatchRule, Raised
from bat_core.leakage.runs import Match, RunIndex
from bat_core.model.leakage import HeldoutItem

BLOCK_BITS = 14.0
"""Bits beyond chance that make a copy, before those for the number of tasks searched."""
REVIEW_BITS = 9.0
ENCODED_BITS = 8.0
"""How much less is enough in text that was encoded."""
WHOLE_SHARE = 0.5
"""Share of a text's bits, and of all its runs of words, that make a copy of the whole."""
WHOLE_BITS = 12.0
SHORT_BITS = 64.0
"""Texts of which the share counts; a copy of a longer one has bits enough."""
_WORTH_A_LOOK = 0.15
_LEAST_WORDS = 8


class CopyRule(BatchRule):
    """Fires on copied words with more bits than chance brings, and on most of a short text."""

    reason = "a copy of a held-out text"

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take texts of eight words or more that say something of their own."""
        long = [item for item in items if self.long_enough(item)]
        kinds = [self.context.kind(item) for item in long]
        self._runs = RunIndex.of(long, kinds, self.context.language)
        self._searched = searched_bits(len({item.task for item in items}))
        own = self._runs.own[::3]
        return {item.item_id for item, bits in zip(long, own.tolist(), strict=True) if bits >= WHOLE_BITS}

    @abstractmethod
    def long_enough(self, item: HeldoutItem) -> bool:
        """Whether a text has enough words to be known by them."""

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return the fingerprints."""
        return {**self._runs.arrays, "searched": np.array([self._searched])}

    def load(self, arrays: Arrays) -> None:
        """Take the fingerprints that `dump` returned."""
        self._runs = RunIndex(arrays)
        self._searched = float(arrays["searched"][0])

    def examine(self, batch: Batch) -> Iterator[Raised]:
        """Yield a finding for each text of which a sample holds enough."""
        match = self._runs.matches(batch)
        if match is None:
            return
        disguised = (match.sources % 3 > 0) | batch.hidden[match.samples]
        ease = ENCODED_BITS * disguised
        enough = BLOCK_BITS + self._searched - ease
        long = match.words >= _LEAST_WORDS - 2 * disguised
        copied = (match.bits >= enough) & long
        review = (match.bits >= REVIEW_BITS + self._searched - ease) & long & ~copied
        own = self._runs.own[match.sources]
        whole = (match.shares >= _WORTH_A_LOOK) & (own >= WHOLE_BITS) & (own <= SHORT_BITS) & ~copied
        for at in np.flatnonzero(copied).tolist():
            yield self._raised(batch, match, at, self.reason)
        for at in self._most(batch, match, np.flatnonzero(whole)):
            yield self._raised(batch, match, at, self.reason)
        for at in np.flatnonzero(review).tolist():
            yield self._raised(batch, match, at, "words of a held-out text")._replace(severity="review")

    def _most(self, batch: Batch, match: Match, chosen: Ints) -> list[int]:
        """Return which of the chosen matches are of a sample that holds most of a text."""
        if not len(chosen):
            return []
        held = self._runs.held(batch, match.samples[chosen], match.sources[chosen])
        most: list[int] = chosen[(held.runs >= WHOLE_SHARE) & (held.bits >= WHOLE_SHARE)].tolist()
        return most

    def _raised(self, batch: Batch, match: Match, at: int, reason: str) -> Raised:
        first = int(match.at[at])
        last = min(first + int(match.length[at]), len(batch.ends)) - 1
        sample = int(match.samples[at])
        while batch.word_samples[last] != sample or batch.low[batch.starts[last]] == 1:
            last -= 1
        kind = int(self._runs.kinds[match.sources[at]])
        return Raised(sample, int(batch.starts[first]), int(batch.ends[last]), kind, reason)
