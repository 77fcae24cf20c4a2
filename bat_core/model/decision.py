"""What the gate decided and why."""

from __future__ import annotations

from typing import Literal

from bat_core.model.base import Value


class Check(Value):
    """One check of the gate: its value, its limit, and whether it holds."""

    name: str
    value: float | None
    limit: float | None
    ok: bool


class Signals(Value):
    """What training itself says about a candidate."""

    finite: bool
    kl: float | None = None
    kl_k3: float | None = None
    reward: float | None = None
    reason: str = ""


class Decision(Value):
    """End of a round. `stop` is a flag beside the outcome, never a fourth outcome."""

    round: int
    outcome: Literal["promoted", "held", "rolled_back"]
    gain: float | None
    checks: tuple[Check, ...]
    reason: str
    stop: bool = False
    stop_reason: str = ""
