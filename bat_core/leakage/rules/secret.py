"""Secrets: canary strings that mark a document as held out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.needles import Needle, NeedleIndex, variants
from bat_core.leakage.normalise import squash
from bat_core.leakage.rules.base import Arrays, BatchRule, Raised
from bat_core.model.leakage import HeldoutItem

_LEAST = 12
_GUID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")


class SecretRule(BatchRule):
    """Fires on a canary anywhere, also inside other text, and on the GUID in it alone."""

    name = "secret"
    kinds = frozenset({"secret"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take canaries of 12 or more letters and digits."""
        covered, needles = set(), []
        for item in items:
            for text in (item.text, *_GUID.findall(item.text)):
                squashed = squash(text)
                if len(squashed) >= _LEAST:
                    covered.add(item.item_id)
                    kind = self.context.kind(item)
                    needles += [Needle(form, kind, bounded=False) for form in variants(squashed)]
        self._needles = NeedleIndex.of(needles, self.context.hasher, self.context.windows)
        return covered

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return the fingerprints."""
        return self._needles.arrays

    def load(self, arrays: Arrays) -> None:
        """Take the fingerprints that `dump` returned."""
        self._needles = NeedleIndex(arrays)

    def examine(self, batch: Batch) -> Iterator[Raised]:
        """Yield a finding for each canary."""
        for hit in self._needles.search(batch):
            yield Raised(hit.sample, hit.start, hit.end, hit.kind, "a canary of the held-out benchmark")
