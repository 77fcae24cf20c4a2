"""A check as a verifier: a function from a case file to a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.evidence import Evidence
from bat_core.model.rubric import RubricItem
from bat_core.model.verdict import ItemVerdict
from bat_medimaging.casefile import Casefile, casefile_of


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        passed: Whether the item holds.
        reason: One line.
        claimed: Whether the rollout claims success of it in words or artifacts.
        evidence: 1 recomputed, 0.5 the agent's artifact as proof of an event, 0 a claim without support.
    """

    passed: bool
    reason: str = ""
    claimed: bool = False
    evidence: float = 1.0


Check = Callable[[Casefile], Finding]


class FunctionVerifier(RubricVerifier):
    """Wraps a check. Bad evidence is a finding, never an exception."""

    def __init__(self, check: Check) -> None:
        self.check = check

    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        """Return the check's verdict on `evidence`."""
        found = self.check(casefile_of(evidence))
        return ItemVerdict(
            item=item.id,
            passed=found.passed,
            evidence=found.evidence,
            claimed=found.claimed or found.passed,
            reason=found.reason,
        )


def claim(passed: bool, reason: str, claimed: bool = True) -> Finding:
    """Return the finding on something that the rollout claims: a failed claim has no support at all."""
    return Finding(passed, reason, claimed, 1.0 if passed or not claimed else 0.0)
