"""RubricVerifier: a verdict on one item from sealed evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bat_core.model.evidence import Evidence
from bat_core.model.rubric import RubricItem
from bat_core.model.verdict import ItemVerdict


class RubricVerifier(ABC):
    """Judges one rubric item. A domain's checks are made by the domain; others get the run's `verify` settings."""

    @abstractmethod
    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        """Return 1, 0 or, where it could not be judged, null with a reason. Never raises for bad evidence."""

    async def aclose(self) -> None:
        """Let go of connections and sandboxes, if there are any. Idempotent."""
        return
