"""Actor: something scripted that drives a sandbox the way a policy does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bat_core.model.message import Message


@dataclass(frozen=True)
class Act:
    """One scripted action.

    Attributes:
        stage: The stage it belongs to.
        message: The assistant turn, with or without a tool call.
        kind: `step` leads on; `slip` is a plausible mistake that the next act mends; `symptom` is a step whose
            observation shows the planted fault: recovery states start right after it.
    """

    stage: str
    message: Message
    kind: str = "step"


class Actor(ABC):
    """Solves a task, or tries to cheat, by script. Deterministic for a given history."""

    name: ClassVar[str] = "expert"
    foresees: ClassVar[bool] = True
    """Whether it marks symptoms itself; else they are recognised by what its calls print."""

    @abstractmethod
    def act(self, history: Sequence[Message]) -> Act | None:
        """Return the next action given what was said so far, or None when the workflow is over."""
