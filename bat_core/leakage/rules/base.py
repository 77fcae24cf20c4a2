"""What the built-in rules share: they look at the view of a sample, not at the sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Literal

from bat_core.errors import LeakageError
from bat_core.hooks.leakage_rule import LeakageRule
from bat_core.leakage.view import Field, View, view_of
from bat_core.model.leakage import HeldoutItem, LeakageFinding

_MOST = 20


class FieldRule(LeakageRule):
    """A rule that looks at fields one by one.

    The checker builds the view of a sample once and passes it to `look` of every such rule.

    Attributes:
        kinds: Kinds of held-out items that it takes in.
        covered_ids: Which items it covers; None before `prepare`.
    """

    kinds: ClassVar[frozenset[str]]

    def __init__(self) -> None:
        self.covered_ids: frozenset[str] | None = None

    def prepare(self, heldout: Sequence[HeldoutItem]) -> int:
        """Index the items of this rule's kinds; too weak ones are refused and not counted."""
        chosen = [item for item in heldout if item.kind in self.kinds]
        covered = self.index(chosen)
        self.covered_ids = frozenset(covered)
        return len([item for item in chosen if item.item_id in covered])

    def check(self, sample: Any) -> Sequence[LeakageFinding]:
        """Return findings in a JSON value."""
        return self.look(view_of(sample))

    def look(self, view: View) -> Sequence[LeakageFinding]:
        """Return findings in a view, the first twenty at most: one is enough to reject."""
        if self.covered_ids is None:
            raise LeakageError(f"rule {self.name} has no held-out items", remedy="call prepare first")
        return list(islice((hit for field in view.fields for hit in self.search(field)), _MOST))

    @abstractmethod
    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take in items of this rule's kinds; return the ids of those that it can check."""

    @abstractmethod
    def search(self, field: Field) -> Iterator[LeakageFinding]:
        """Yield findings in a field."""

    def finding(
        self, field: Field, start: int, end: int, kind: str, reason: str, severity: Literal["block", "review"] = "block"
    ) -> LeakageFinding:
        """Return a finding for a span of the folded text."""
        place = field.place(start, end)
        note = f"{reason}, after decoding" if field.depth else reason
        return LeakageFinding(
            rule=self.name,
            severity=severity,
            kind=kind,
            path=place.path,
            start=place.start,
            end=place.end,
            reason=note,
        )
