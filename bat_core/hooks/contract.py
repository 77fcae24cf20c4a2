"""StageContract: what the stages of a workflow are and how their scores add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from bat_core.model.evidence import Evidence
from bat_core.model.rubric import Rubric
from bat_core.model.stage import Stage
from bat_core.model.task import Stratum, Task


class StageContract(ABC):
    """The stages of a domain, in order, with their rubrics and start states.

    All methods are pure functions of their arguments.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"

    @abstractmethod
    def stages(self) -> Sequence[Stage]:
        """Return the stages in order of the workflow."""

    @abstractmethod
    def tracks(self) -> Sequence[str]:
        """Return the names of the tracks; at least one."""

    @abstractmethod
    def rubric(self, task: Task, stage: str, stratum: Stratum) -> Rubric:
        """Return the applicable items of `stage` for a state of `task` in `stratum`."""

    @abstractmethod
    def workspace(self, task: Task) -> Mapping[str, bytes]:
        """Return the files (workspace-relative path to content) with which the workflow starts."""

    @abstractmethod
    def protected(self) -> Sequence[str]:
        """Return path prefixes that a policy must not change; a change is an integrity breach."""

    def breach(self, evidence: Evidence) -> str:
        """Return what a rollout tampered with apart from protected paths, empty if nothing; its reward is then 0."""
        return ""

    @abstractmethod
    def introduction(self, task: Task) -> str:
        """Return the text that opens every conversation about `task`: where things are, what the job is."""

    def instruction(self, task: Task, stage: Stage, rubric: Rubric) -> str:
        """Return what the policy is told when it takes over at `stage`: goal and disclosed criteria."""
        criteria = "; ".join(item.criterion for item in rubric.items)
        return f"Stage {stage.id} {stage.title}: {stage.goal} Rubric: {criteria}."

    def opening(self, task: Task, rubrics: Sequence[Rubric]) -> str:
        """Return what the policy is asked first: all stages in order, with goals and disclosed criteria."""
        stages = {stage.id: stage for stage in self.stages()}
        return "\n".join(self.instruction(task, stages[rubric.stage], rubric) for rubric in rubrics)

    def closing(self, stage: Stage) -> str:
        """Return the final words of a policy that was asked for `stage` only and has done it."""
        return "stage done"

    @abstractmethod
    def task_score(self, task: Task, files: Mapping[str, bytes]) -> float | None:
        """Return the task score in [0, 1] of the final files, None where the track has none."""

    def aggregate(self, scores: Mapping[str, float | None]) -> float | None:
        """Return the weighted mean over applicable stages; None if a stage present in `scores` is None.

        Args:
            scores: Score by stage id. A stage that does not apply is absent and its weight renormalised.
        """
        if not scores or any(score is None for score in scores.values()):
            return None
        weights = {stage.id: stage.weight for stage in self.stages()}
        total = sum(weights[stage] for stage in scores)
        return sum(weights[stage] * (score or 0.0) for stage, score in scores.items()) / total
