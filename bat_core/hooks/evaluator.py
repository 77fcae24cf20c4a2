"""Evaluator: a policy's Diagnosis on a benchmark that the trainer never sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from bat_core.model.diagnosis import Diagnosis
from bat_core.model.leakage import HeldoutItem
from bat_core.model.training import PolicyRef

EvalProgress = Callable[[int, int], None]


class Evaluator(ABC):
    """A benchmark adapter. Constructed and run inside the evaluator process only."""

    @abstractmethod
    def evaluate(self, policy: PolicyRef, against: PolicyRef | None, progress: EvalProgress) -> Diagnosis:
        """Return aggregates of `policy`, paired cell by cell with `against`; cells stay inside."""

    @abstractmethod
    def heldout(self) -> Sequence[HeldoutItem]:
        """Return what must never be trained on; feeds the leakage checker."""
