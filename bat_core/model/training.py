"""What a trainer is asked for, and what it returns."""

from __future__ import annotations

from bat_core.model.base import Value
from bat_core.model.message import Message


class PolicyRef(Value):
    """A policy by folder and digest; names, not objects, travel."""

    path: str
    digest: str


class Slice(Value):
    """A single-step SFT example: the whole history before it, and the expert's action.

    Attributes:
        trajectory: Train and validation split by this.
        stage: Stage in which the action falls.
        messages: History (system, user, assistant, tool).
        target: The expert's action, the only place where loss falls.
        source: Digest of the state from which the expert acted.
    """

    id: str
    trajectory: str
    stage: str
    messages: tuple[Message, ...]
    target: Message
    source: str = ""


class TrainStats(Value):
    """Counts of a training phase."""

    rollouts: int = 0
    lost: int = 0
    groups: int = 0
    dropped_groups: int = 0
    flat_groups: int = 0
    policy_tokens: int = 0
    trained_tokens: int = 0
    steps: int = 0


class TrainResult(Value):
    """A finished phase of training.

    Attributes:
        policy: The new weights.
        finite: Whether every logged metric was finite.
        reward_first, reward_mean: Mean reward of the first step and of all steps.
        kl, kl_k3: KL(theta || theta*) per token on the probe set: exact over the vocabulary, and k3.
        stats: Counts.
    """

    policy: PolicyRef
    finite: bool = True
    reward_first: float | None = None
    reward_mean: float | None = None
    kl: float | None = None
    kl_k3: float | None = None
    stats: TrainStats = TrainStats()


class Problem(Value):
    """A setting that a trainer can't honour."""

    key: str
    message: str
    remedy: str = ""
