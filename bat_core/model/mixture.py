"""Which states a round trains on."""

from __future__ import annotations

from pydantic import Field

from bat_core.model.base import Value


class Mixture(Value):
    """q_r: exact numbers of groups a batch, by pool.

    Attributes:
        round: From 1.
        target: s*_r, the stage whose states fill the target pool.
        groups: Groups a batch by pool (`target`, `mix`, `e2e`); exact in every batch.
        mix: The stages from which the mix pool is drawn.
        reason: Why this target.
    """

    round: int = Field(ge=1)
    target: str
    groups: dict[str, int]
    mix: tuple[str, ...]
    reason: str
