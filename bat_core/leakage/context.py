"""What rules need besides the held-out items: the key, a model of clean text, and a sight of clean samples."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bat_core.leakage.batch import Batch
from bat_core.leakage.counts import Counts
from bat_core.leakage.hashing import KEY_BYTES, Hasher
from bat_core.leakage.language import Language
from bat_core.leakage.values import Values
from bat_core.model.leakage import HeldoutItem

_TOGETHER = 256


@dataclass
class Context:
    """Shared by all rules of a panel while they take in held-out items.

    Attributes:
        hasher: The key.
        clean: Clean samples, as their texts.
        labels: Names of kinds of held-out items; rules keep their numbers.
    """

    hasher: Hasher = field(default_factory=lambda: Hasher(secrets.token_bytes(KEY_BYTES)))
    clean: Sequence[Sequence[str]] = ()
    labels: list[str] = field(default_factory=list)

    def kind(self, item: HeldoutItem) -> int:
        """Return the number of an item's kind."""
        return self.kind_of(item.label or item.kind)

    def kind_of(self, label: str) -> int:
        """Return the number of a kind."""
        if label not in self.labels:
            self.labels.append(label)
        return self.labels.index(label)

    def clean_batches(self) -> Iterable[Batch]:
        """Yield the clean samples in batches."""
        for start in range(0, len(self.clean), _TOGETHER):
            yield Batch(self.clean[start : start + _TOGETHER], self.hasher)

    @cached_property
    def values(self) -> Values:
        """What number words mean."""
        return Values(self.hasher)

    @cached_property
    def language(self) -> Language:
        """A model of clean text; it counts held-out texts as they are weighed."""
        language = Language(self.hasher)
        for batch in self.clean_batches():
            language.add(batch)
        return language

    @cached_property
    def windows(self) -> Counts:
        """How often clean samples hold windows of eight letters and digits."""
        counts = Counts()
        for batch in self.clean_batches():
            counts.add(batch.windows)
        return counts

    @cached_property
    def chunks(self) -> Counts:
        """How often clean samples hold chunks."""
        counts = Counts()
        for batch in self.clean_batches():
            counts.add(batch.chunks)
        return counts

    def public(self, squashed: Iterable[str]) -> set[str]:
        """Return which squashed texts stand in clean samples: they can't tell anything."""
        from bat_core.leakage.needles import Needle, NeedleIndex

        if not self.clean:
            return set()
        texts = list(dict.fromkeys(squashed))
        found: set[str] = set()
        index = NeedleIndex.of([Needle(text, 0) for text in texts], self.hasher, self.windows)
        rows = {self.hasher.whole(text.encode()): text for text in texts}
        for batch in self.clean_batches():
            for hit in index.search(batch):
                inside = batch.squashed[(batch.places >= hit.start) & (batch.places < hit.end)]
                text = rows.get(self.hasher.whole(inside.tobytes()))
                found.update([text] if text else [])
        return found
