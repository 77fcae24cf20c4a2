"""A stage of the workflow."""

from __future__ import annotations

from pydantic import Field

from bat_core.model.base import Value

E2E = "E2E"
"""The focus of a state that starts at the beginning and goes through all stages."""


class Stage(Value):
    """One stage, in order of the workflow.

    Attributes:
        id: Short name, such as `S3`.
        title: A word or two.
        goal: What the policy is asked to reach; stands in its prompt.
        weight: Share of the agentic score; the contract's weights need not sum to 1.
        guard: Largest drop (0-1) of the stage's score that the gate tolerates.
        recovery: Steps shown to the policy in target-pool recovery states only.
    """

    id: str
    title: str
    goal: str
    weight: float = Field(gt=0)
    guard: float = Field(default=0.03, gt=0, le=1)
    recovery: tuple[str, ...] = ()
