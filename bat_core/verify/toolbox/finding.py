"""A finding: what a check found, with its evidence taken apart, and how it becomes a verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.evidence import Evidence
from bat_core.model.rubric import RubricItem
from bat_core.model.verdict import ItemVerdict, Slot

RECOMPUTED = 1.0
"""We computed it ourselves from trusted inputs, or the harness logged an allowed, unmasked, unmodified tool."""
PARTIAL = 0.5
"""One side only: the log is truncated, or an artifact of the agent stands for an event."""
TOLD = 0.25
"""A receipt that the agent wrote, typed numbers, echoed text."""
NOTHING = 0.0

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        passed: Whether the item holds; None where we could not find out (then `reason` says why).
        reason: One line.
        claimed: Whether the rollout claims success of it in words or artifacts.
        evidence: How far evidence bears it out, before the slots are counted.
        slots: Needed pieces of evidence; the weakest one counts.
    """

    passed: bool | None
    reason: str = ""
    claimed: bool = False
    evidence: float = RECOMPUTED
    slots: tuple[Slot, ...] = ()

    @property
    def eta(self) -> float:
        """Return eta_i: the evidence times the least trust of the slots."""
        return self.evidence * min((slot.trust for slot in self.slots), default=1.0)

    def lowered(self, name: str, trust: float, reason: str) -> Finding:
        """Return the finding with one more needed piece of evidence."""
        return replace(self, slots=(*self.slots, Slot(name=name, trust=trust, reason=reason)))

    def verdict(self, item: RubricItem) -> ItemVerdict:
        """Return the verdict on `item`. What is passed is claimed: its evidence counts."""
        return ItemVerdict(
            item=item.id,
            passed=self.passed,
            evidence=self.eta,
            claimed=self.claimed or self.passed is True,
            reason=self.reason or ("could not be found out" if self.passed is None else ""),
            slots=self.slots,
        )


def claim(passed: bool, reason: str, claimed: bool = True) -> Finding:
    """Return the finding on something that the rollout claims: a failed claim has no support at all."""
    return Finding(passed, reason, claimed, RECOMPUTED if passed or not claimed else NOTHING)


class FunctionVerifier(RubricVerifier, Generic[T]):
    """A check as a verifier. Bad evidence is a finding, never an exception.

    Args:
        check: From a prepared case to a finding, plain or async.
        prepare: From the sealed evidence to the case; shared between checks by the domain, if it is dear.
    """

    def __init__(self, check: Callable[[T], Finding | Awaitable[Finding]], prepare: Callable[[Evidence], T]) -> None:
        self.check = check
        self.prepare = prepare

    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        """Return the check's verdict on `evidence`."""
        found = self.check(self.prepare(evidence))
        return (found if isinstance(found, Finding) else await found).verdict(item)
