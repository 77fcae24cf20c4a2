"""What of a rubric the policy is told, and what of it counts: hidden probes and item dropout."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bat_core.hooks.contract import StageContract
from bat_core.model.base import digest_of
from bat_core.model.evidence import Evidence
from bat_core.model.rubric import Rubric
from bat_core.model.stage import Stage
from bat_core.model.task import Stratum, Task


def kept(rubric: Rubric, share: float, key: str) -> Rubric:
    """Return the rubric without a share of its items, at least one kept.

    Args:
        rubric: The contract.
        share: Share of items that is left out, rounded down.
        key: What the choice depends on: the same key leaves out the same items.
    """
    if share == 0:
        return rubric
    count = min(int(share * len(rubric.items)), len(rubric.items) - 1)
    order = sorted(rubric.items, key=lambda item: digest_of([key, item.id]))
    gone = {item.id for item in order[:count]}
    return rubric.model_copy(update={"items": tuple(item for item in rubric.items if item.id not in gone)})


def disclosed(rubric: Rubric, hidden: Collection[str]) -> Rubric:
    """Return what the policy is told of a rubric: all but hidden items, the whole of one that has no others."""
    shown = tuple(item for item in rubric.items if item.id not in hidden)
    return rubric.model_copy(update={"items": shown}) if shown else rubric


def disclosing(contract: StageContract, hidden: Collection[str]) -> StageContract:
    """Return a contract that is `contract` but for what its prompts tell."""
    return _Disclosing(contract, frozenset(hidden)) if hidden else contract


class _Disclosing(StageContract):
    """A contract whose texts leave hidden items out; everything else is the inner one's."""

    def __init__(self, inner: StageContract, hidden: frozenset[str]) -> None:
        self._inner, self._hidden = inner, hidden
        self.name, self.version = inner.name, inner.version  # type: ignore[misc]

    def stages(self) -> Sequence[Stage]:
        return self._inner.stages()

    def tracks(self) -> Sequence[str]:
        return self._inner.tracks()

    def rubric(self, task: Task, stage: str, stratum: Stratum) -> Rubric:
        return self._inner.rubric(task, stage, stratum)

    def workspace(self, task: Task) -> Mapping[str, bytes]:
        return self._inner.workspace(task)

    def protected(self) -> Sequence[str]:
        return self._inner.protected()

    def breach(self, evidence: Evidence) -> str:
        return self._inner.breach(evidence)

    def introduction(self, task: Task) -> str:
        return self._inner.introduction(task)

    def instruction(self, task: Task, stage: Stage, rubric: Rubric) -> str:
        return self._inner.instruction(task, stage, disclosed(rubric, self._hidden))

    def opening(self, task: Task, rubrics: Sequence[Rubric]) -> str:
        return self._inner.opening(task, [disclosed(rubric, self._hidden) for rubric in rubrics])

    def closing(self, stage: Stage) -> str:
        return self._inner.closing(stage)

    def task_score(self, task: Task, files: Mapping[str, bytes]) -> float | None:
        return self._inner.task_score(task, files)

    def aggregate(self, scores: Mapping[str, float | None]) -> float | None:
        return self._inner.aggregate(scores)
