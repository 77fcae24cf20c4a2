"""Rules that look for fixed texts, wherever these stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.needles import Needle, NeedleIndex
from bat_core.leakage.rules.base import Arrays, BatchRule, Raised


class NeedleRule(BatchRule):
    """Fires on each needle; a rule of this kind says in `index` which these are.

    Attributes:
        reason: What a finding says.
    """

    reason: ClassVar[str]

    def keep(self, needles: Sequence[Needle]) -> None:
        """Take the needles as fingerprints."""
        self._needles = NeedleIndex.of(needles, self.context.hasher, self.context.windows)

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return the fingerprints."""
        return self._needles.arrays

    def load(self, arrays: Arrays) -> None:
        """Take the fingerprints that `dump` returned."""
        self._needles = NeedleIndex(arrays)

    def examine(self, batch: Batch) -> Iterator[Raised]:
        """Yield a finding for each needle."""
        for hit in self._needles.search(batch):
            yield Raised(hit.sample, hit.start, hit.end, hit.kind, self.reason)
