"""Engine: where a policy's tokens come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple


class Sampled(NamedTuple):
    """One assistant turn: token ids as sampled (end of turn included) with their log-probabilities."""

    ids: list[int]
    logprobs: list[float]
    finished: bool


class Session(ABC):
    """A set of rollouts that are generated together, one slot each. Context grows; nothing is encoded twice."""

    @abstractmethod
    async def sample(self, slot: int, new_ids: Sequence[int], max_tokens: int) -> Sampled:
        """Append `new_ids` to the slot's context and sample one assistant turn."""

    @abstractmethod
    def leave(self, slot: int) -> None:
        """Say that the slot will ask no more. Idempotent."""


class Engine(ABC):
    """Opens sessions for one policy."""

    tokenizer: Any
    context: int

    @abstractmethod
    def open(self, seeds: Sequence[int]) -> Session:
        """Open a session with one slot a seed; a slot's tokens depend on its own seed only."""


_ATTACHED: dict[str, Engine] = {}


def attach(name: str, engine: Engine) -> None:
    """Make an engine that lives in this process known by name, so that only names travel."""
    _ATTACHED[name] = engine


def attached(name: str) -> Engine:
    """Return the engine attached under `name`."""
    return _ATTACHED[name]
