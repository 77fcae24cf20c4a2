"""The five stages of a medical-imaging workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bat_core.hooks.contract import StageContract
from bat_core.model.evidence import Evidence
from bat_core.model.rubric import Rubric
from bat_core.model.stage import Stage
from bat_core.model.task import Stratum, Task
from bat_medimaging import score
from bat_medimaging.items import rubric_of
from bat_medimaging.synthesizer import TRACKS, VERSION
from bat_medimaging.toolbelt.phx import pipeline
from bat_medimaging.workspace import PROTECTED, workspace_of

STAGES = (
    Stage(
        id="S1",
        title="plan",
        goal="read task and card, write plan/plan.md",
        weight=0.25,
        recovery=("keep the card's values", "name each conflict in the plan"),
    ),
    Stage(
        id="S2",
        title="setup",
        goal="verify and load the weights, write pipeline/config.json",
        weight=0.15,
        recovery=("compare hashes", "use a mirror with the right hash"),
    ),
    Stage(
        id="S3",
        title="validate",
        goal="run one pilot case and look at its output",
        weight=0.35,
        recovery=("find the setting that differs from the card", "fix it, run and look again"),
    ),
    Stage(
        id="S4",
        title="infer",
        goal="run all readable cases, report the others",
        weight=0.15,
        recovery=("skip the unreadable case with its reason", "run the rest"),
    ),
    Stage(
        id="S5",
        title="submit",
        goal="validate, repair, submit true counts",
        weight=0.10,
        recovery=("repair the case that the validator names", "skip it if no repair helps", "validate again"),
    ),
)


class MedImagingContract(StageContract):
    """Plan, setup, validate, infer, submit."""

    name = "medimaging"
    version = VERSION

    def stages(self) -> Sequence[Stage]:
        """Return the five stages."""
        return STAGES

    def tracks(self) -> Sequence[str]:
        """Return the two tracks."""
        return TRACKS

    def rubric(self, task: Task, stage: str, stratum: Stratum) -> Rubric:
        """Return the items of `stage` that apply to the task's faults."""
        return rubric_of(stage, task.faults)

    def workspace(self, task: Task) -> Mapping[str, bytes]:
        """Return inputs, candidate models and stage skills."""
        return dict(workspace_of(task))

    def protected(self) -> Sequence[str]:
        """Return what is given and must not change."""
        return PROTECTED

    def breach(self, evidence: Evidence) -> str:
        """Return whether the pipeline is told to use weights that nobody gave."""
        used = pipeline.config_of(evidence.files).get("weights")
        foreign = isinstance(used, str) and ("/" in used or "\\" in used)
        return f"the configuration names foreign weights {used[:60]!r}" if foreign and isinstance(used, str) else ""

    def introduction(self, task: Task) -> str:
        """Return where things are and what the job is."""
        return f"{task.track} task in /workspace; skills in skills/; python has phx. Start: phx.brief()"

    def task_score(self, task: Task, files: Mapping[str, bytes]) -> float | None:
        """Return macro mean Dice, or balanced accuracy."""
        return score.task_score(task, files)
