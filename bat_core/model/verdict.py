"""Verdicts on single items."""

from __future__ import annotations

from pydantic import Field, model_validator

from bat_core.model.base import Value


class Slot(Value):
    """One piece of evidence that an item needs, and how far it can be trusted.

    Attributes:
        name: What is needed, such as `log line of the smoke test`.
        trust: 1 recomputed or logged by the harness, 0.5 one side only, 0.25 told, 0 nothing.
        reason: Where it was found, or why it was not.
    """

    name: str
    trust: float = Field(ge=0, le=1)
    reason: str = ""


class ItemVerdict(Value):
    """v of the method: True, False, or None when it could not be judged (then `reason` says why).

    Attributes:
        item: Id of the rubric item.
        passed: The verdict.
        evidence: eta_i, how far required evidence bears the item out (0-1).
        claimed: Whether the rollout claims success of this item in words or artifacts.
        reason: One line.
        slots: What `evidence` was made of; empty where the check did not take it apart.
    """

    item: str
    passed: bool | None
    evidence: float = Field(default=1.0, ge=0, le=1)
    claimed: bool = False
    reason: str = ""
    slots: tuple[Slot, ...] = ()

    @model_validator(mode="after")
    def _null_has_a_reason(self) -> ItemVerdict:
        if self.passed is None and not self.reason:
            raise ValueError(f"item {self.item}: a null verdict needs a reason")
        return self
