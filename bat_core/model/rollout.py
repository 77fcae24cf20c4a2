"""What a policy did from a state, sealed."""

from __future__ import annotations

from typing import Literal

from bat_core.model.base import Value
from bat_core.model.message import Message
from bat_core.model.receipt import Receipt
from bat_core.model.sandbox import SnapshotRef


class Rollout(Value):
    """Rollout k from state i: trajectory, receipts and the sealed workspace at its end.

    Attributes:
        state: Id of the state.
        index: k, from 0.
        messages: What the policy and its tools said after the state's own messages.
        receipts: One per executed call.
        final: The sealed workspace, or None if the rollout was lost.
        end: Why it ended. `lost` is our failure: the rollout is unscorable. `overflow` is the policy's: it left more
            than may be sealed, so nothing of it counts.
        reason: Detail for `lost` and `overflow`.
        policy_tokens: Tokens sampled by the policy.
        turns: Assistant turns.
    """

    state: str
    index: int = 0
    messages: tuple[Message, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    final: SnapshotRef | None = None
    end: Literal["finished", "turns", "tokens", "context", "overflow", "lost"] = "finished"
    reason: str = ""
    policy_tokens: int = 0
    turns: int = 0
