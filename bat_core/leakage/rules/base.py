"""What the built-in rules share: they look at many samples at once, by fingerprints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bat_core.errors import LeakageError
from bat_core.hooks.leakage_rule import LeakageRule
from bat_core.leakage.batch import Batch
from bat_core.leakage.context import Context
from bat_core.model.leakage import HeldoutItem, LeakageFinding

Arrays = Mapping[str, NDArray[np.generic]]
Severity = Literal["block", "review"]


class Raised(NamedTuple):
    """What a rule found in a batch: in which sample, in which bytes of the batch's text, of which kind."""

    sample: int
    start: int
    end: int
    kind: int
    reason: str
    severity: Severity = "block"


class BatchRule(LeakageRule):
    """A rule that looks at batches and whose held-out side can be kept as fingerprints.

    Attributes:
        kinds: Kinds of held-out items that it takes in.
        covered_ids: Which items it covers; None before `prepare`, empty after `restore`.
    """

    kinds: ClassVar[frozenset[str]]

    def __init__(self) -> None:
        self.covered_ids: frozenset[str] | None = None
        self.context = Context()

    def prepare(self, heldout: Sequence[HeldoutItem]) -> int:
        """Index the items of this rule's kinds; too weak ones are refused and not counted."""
        return self.take(heldout, Context())

    def take(self, heldout: Sequence[HeldoutItem], context: Context) -> int:
        """Index the items of this rule's kinds under a key that rules share."""
        chosen = [item for item in heldout if item.kind in self.kinds]
        self.context = context
        covered = self.index(chosen)
        self.covered_ids = frozenset(covered)
        return len([item for item in chosen if item.item_id in covered])

    def restore(self, arrays: Arrays, context: Context) -> None:
        """Take the fingerprints that `dump` returned, under the same key."""
        self.context = context
        self.load(arrays)
        self.covered_ids = frozenset()

    def check(self, sample: Any) -> Sequence[LeakageFinding]:
        """Return findings in a JSON value."""
        from bat_core.leakage.scan import Scanner

        if self.covered_ids is None:
            raise LeakageError(f"rule {self.name} has no held-out items", remedy="call prepare first")
        return Scanner([self], self.context).check(sample)

    @abstractmethod
    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take in items of this rule's kinds; return the ids of those that it can check."""

    @abstractmethod
    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return the fingerprints: numbers only."""

    @abstractmethod
    def load(self, arrays: Arrays) -> None:
        """Take the fingerprints that `dump` returned."""

    @abstractmethod
    def examine(self, batch: Batch) -> Iterator[Raised]:
        """Yield findings in a batch."""
