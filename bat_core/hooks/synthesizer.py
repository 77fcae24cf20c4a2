"""TaskSynthesizer: where fictional tasks come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from bat_core.model.base import JsonObject, Value
from bat_core.model.task import Stratum, Task


class SynthesisRequest(Value):
    """What the bank asks for: `count` tasks of one track, stratum and fault stage.

    Attributes:
        track: Track.
        stratum: Outcome stratum.
        stage: Stage in which the fault shows (recovery, failure); None lets the synthesizer choose.
        count: How many.
        seed: Same request, same tasks.
    """

    track: str
    stratum: Stratum
    stage: str | None = None
    count: int = 1
    seed: int = 0


class TaskSynthesizer(ABC):
    """Makes fictional tasks from a seed (or, in other drivers, from a teacher model)."""

    @classmethod
    def opened(cls, domain: Any, settings: JsonObject) -> TaskSynthesizer:
        """Return the synthesizer for a domain; `settings` is the configuration's section `bank`."""
        made: TaskSynthesizer = cls(domain)  # type: ignore[call-arg]
        return made

    def expect(self, tasks: int) -> None:  # noqa: B027 - most cost nothing
        """Say what making so many tasks will cost, before anything is asked."""

    @abstractmethod
    def synthesize(self, request: SynthesisRequest) -> Iterator[Task]:
        """Yield exactly `request.count` tasks; the same request yields the same tasks."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go
        """Let go of connections, and say what was spent. Idempotent."""
