"""Identifiers: task ids, UUIDs, accessions, commits, digests of masks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.halves import HalfIndex
from bat_core.leakage.needles import Needle, NeedleIndex, digest_needles, is_digest, variants
from bat_core.leakage.normalise import squash
from bat_core.leakage.rules.base import Arrays, BatchRule, Raised
from bat_core.leakage.table import Table
from bat_core.model.leakage import HeldoutItem

_LEAST = 8
_LEAST_LETTERS = 16
_COMMIT, _SHORT = 40, 7
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
"""Of UUIDs only the whole counts: many begin with the time and end with the machine."""


class IdentifierRule(BatchRule):
    """Fires on an identifier in any spelling or in two pieces, but not on one that merely begins like it."""

    name = "identifier"
    kinds = frozenset({"identifier"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take identifiers of 8 or more letters and digits (16 if there is no digit): `case-12` is too generic."""
        covered: set[str] = set()
        needles: list[Needle] = []
        names: list[tuple[str, int]] = []
        digests: list[str] = []
        for item in items:
            squashed, kind = squash(item.text), self.context.kind(item)
            if len(squashed) < _LEAST or (len(squashed) < _LEAST_LETTERS and squashed.isalpha()):
                continue
            covered.add(item.item_id)
            needles += [Needle(form, kind) for form in variants(squashed)]
            if is_digest(squashed) and not _UUID.fullmatch(item.text.strip()):
                needles += digest_needles(squashed, kind)
                digests.append(squashed)
            elif not is_digest(squashed):
                names.append((squashed, kind))
        hasher = self.context.hasher
        self._needles = NeedleIndex.of(needles, hasher, self.context.windows, digests)
        self._halves = HalfIndex.of(names, hasher, self.context.chunks)
        short = [digest[:_SHORT] for digest in digests if len(digest) == _COMMIT and _mixed(digest[:_SHORT])]
        self._short = Table(np.sort(np.array([hasher.whole(text.encode()) for text in short], np.uint64)))
        return covered

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return the fingerprints."""
        halves = {f"half_{name}": array for name, array in self._halves.arrays.items()}
        return {**self._needles.arrays, **halves, "short": self._short.hashes}

    def load(self, arrays: Arrays) -> None:
        """Take the fingerprints that `dump` returned."""
        self._needles = NeedleIndex(arrays)
        self._halves = HalfIndex({name: arrays[f"half_{name}"] for name in ("rare", "rest", "kinds")})
        self._short = Table(arrays["short"].astype(np.uint64))

    def examine(self, batch: Batch) -> Iterator[Raised]:
        """Yield a finding for each identifier."""
        for hit in self._needles.search(batch):
            yield Raised(hit.sample, hit.start, hit.end, hit.kind, "a held-out identifier")
        for hit in self._halves.search(batch):
            yield Raised(hit.sample, hit.start, hit.end, hit.kind, "a held-out identifier in two pieces")
        at, _ = self._short.contains(batch.words)
        for word in at.tolist():
            start, end = int(batch.starts[word]), int(batch.ends[word])
            sample = int(batch.word_samples[word])
            yield Raised(sample, start, end, self.context.kind_of("commit"), "the beginning of a held-out commit")


def _mixed(text: str) -> bool:
    """Whether a text has letters and digits enough to be no word and no number."""
    return 2 <= sum(char.isdigit() for char in text) <= len(text) - 2
