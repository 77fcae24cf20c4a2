"""The `self-instruct` synthesizer: by default the domain's own offline one."""

from __future__ import annotations

from collections.abc import Iterator

from bat_core.hooks.domain import Domain
from bat_core.hooks.synthesizer import SynthesisRequest, TaskSynthesizer
from bat_core.model.task import Task


class SelfInstruct(TaskSynthesizer):
    """Asks the domain's seeded generator; needs no teacher model and no network.

    Args:
        domain: Whose tasks.
    """

    def __init__(self, domain: Domain) -> None:
        self._offline = domain.synthesizer()

    def synthesize(self, request: SynthesisRequest) -> Iterator[Task]:
        """Yield the domain's tasks for the request."""
        return self._offline.synthesize(request)

    def close(self) -> None:
        """Close the domain's synthesizer."""
        self._offline.close()
