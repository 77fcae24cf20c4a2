"""CurriculumPolicy: what to practise next, and what to make of a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from bat_core.model.decision import Decision, Signals
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History
from bat_core.model.mixture import Mixture
from bat_core.model.stage import Stage


class CurriculumPolicy(ABC):
    """The outer loop's policy. A pure function of the journal: it keeps no state of its own."""

    @abstractmethod
    def prescribe(self, history: History, stages: Sequence[Stage]) -> Mixture:
        """Return the mixture of the next round; names only stages in `stages`."""

    @abstractmethod
    def decide(self, history: History, diagnosis: Diagnosis, signals: Signals, stages: Sequence[Stage]) -> Decision:
        """Return promote, hold or roll back for the candidate that `diagnosis` describes."""
