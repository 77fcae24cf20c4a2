"""Rewards and stage scores, decomposed."""

from __future__ import annotations

from pydantic import Field

from bat_core.model.base import Value, digest_of
from bat_core.model.verdict import ItemVerdict


class StageScore(Value):
    """Score of one stage (0-1), or None with a reason."""

    stage: str
    score: float | None = Field(default=None, ge=0, le=1)
    evidence: float = Field(default=1.0, ge=0, le=1)
    verdicts: tuple[ItemVerdict, ...] = ()
    reason: str = ""


class Reward(Value):
    """r of the method, with everything it was made of.

    Attributes:
        value: In [0, 1], or None when the rollout is unscorable.
        evidence: eta of the rollout.
        items: |c|, the number of applicable items.
        nulls: How many items could not be judged.
        stages: Per stage.
        task: Task score of an E2E rollout, None if the state has none.
        breach: What was tampered with; the value is then 0 and the rollout is never training data for SFT.
        reason: Why the value is None or 0 by a breach.
    """

    value: float | None = Field(default=None, ge=0, le=1)
    evidence: float = Field(default=1.0, ge=0, le=1)
    items: int = 0
    nulls: int = 0
    stages: tuple[StageScore, ...] = ()
    task: float | None = Field(default=None, ge=0, le=1)
    breach: str = ""
    reason: str = ""

    @property
    def digest(self) -> str:
        """Identity of the reward and all its parts."""
        return digest_of(self)
