"""LeakageRule: one way in which a sample can hold held-out content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from bat_core.model.leakage import HeldoutItem, LeakageFinding


class LeakageRule(ABC):
    """Checks samples against held-out items. Runs inside the checker process only.

    All installed rules always run. A rule that raises rejects the sample.
    """

    name: ClassVar[str]

    @abstractmethod
    def prepare(self, heldout: Sequence[HeldoutItem]) -> int:
        """Take in the held-out side once; return how many items this rule covers."""

    @abstractmethod
    def check(self, sample: Any) -> Sequence[LeakageFinding]:
        """Return findings in a JSON value; empty means clean. Offsets refer to the field as given."""
