"""The journal as the curriculum reads it: its only memory."""

from __future__ import annotations

from bat_core.model.base import Value
from bat_core.model.decision import Decision, Signals
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.mixture import Mixture


class RoundRecord(Value):
    """One finished round; `bank` is the digest of the generation that it drew from."""

    round: int
    mixture: Mixture
    diagnosis: Diagnosis
    signals: Signals
    decision: Decision
    bank: str = ""


class History(Value):
    """Everything decided so far: the cold start's diagnosis, then one record a round."""

    coldstart: Diagnosis
    rounds: tuple[RoundRecord, ...] = ()

    @property
    def best(self) -> Diagnosis:
        """Diagnosis of theta*: the last promoted round's, else the cold start's."""
        for record in reversed(self.rounds):
            if record.decision.outcome == "promoted":
                return record.diagnosis
        return self.coldstart
