"""Cutting a trajectory into states, each with the expert's own continuation as proof that it can be solved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bat_core.bank.trajectory import Step, Trajectory, rubrics_of, stratum_at
from bat_core.model.message import Message
from bat_core.model.rollout import Rollout
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.stage import E2E, Stage
from bat_core.model.state import StageState
from bat_core.model.task import Stratum
from bat_core.rollout.lab import Lab


@dataclass(frozen=True)
class Cut:
    """A state and the expert's rollout from it."""

    state: StageState
    expert: Rollout


def cut(lab: Lab, trajectory: Trajectory, *, e2e: bool = True) -> Iterator[Cut]:
    """Yield the E2E state and one state a stage.

    Where a fault shows, the stage's state begins right behind the symptom (recovery and failure strata).
    """
    if e2e:
        yield _cut(lab, trajectory, E2E, trajectory.task.stratum, 0, len(trajectory.steps))
    for stage in lab.contract.stages():
        inside = [i for i, step in enumerate(trajectory.steps) if step.act.stage == stage.id]
        if not inside:
            continue
        stratum = stratum_at(lab, trajectory.task, stage.id)
        begin = inside[0] if stratum is Stratum.SUCCESS else _behind_symptom(trajectory.steps, inside)
        if begin is not None:
            yield _cut(lab, trajectory, stage.id, stratum, begin, inside[-1] + 1)


def _behind_symptom(steps: list[Step], inside: list[int]) -> int | None:
    for i in inside:
        if steps[i].act.kind == "symptom":
            return i + 1
    return None


def _cut(lab: Lab, trajectory: Trajectory, focus: str, stratum: Stratum, begin: int, end: int) -> Cut:
    task = trajectory.task
    start = _sealed(trajectory, begin)
    rubrics = rubrics_of(lab, task)
    if focus != E2E:
        rubrics = (lab.contract.rubric(task, focus, stratum),)
    state = StageState(
        id=f"{task.id}:{focus}",
        task=task,
        focus=focus,
        stratum=stratum,
        snapshot=start,
        messages=trajectory.messages(begin),
        receipts=trajectory.receipts(begin),
        rubrics=rubrics,
    )
    said = list(trajectory.messages(end)[len(state.messages) :])
    if focus != E2E:
        said = _closed(lab, focus, said)
    expert = Rollout(
        state=state.id,
        messages=tuple(said),
        receipts=trajectory.receipts(end)[len(state.receipts) :],
        final=_sealed(trajectory, end),
        turns=sum(message.role == "assistant" for message in said),
    )
    return Cut(state, expert)


def _closed(lab: Lab, focus: str, said: list[Message]) -> list[Message]:
    """End a stage's continuation with its closing words, unless the expert has spoken its own."""
    stage: Stage = next(s for s in lab.contract.stages() if s.id == focus)
    if said and said[-1].role == "assistant" and not said[-1].tool_calls:
        return said
    return [*said, Message(role="assistant", content=lab.contract.closing(stage))]


def _sealed(trajectory: Trajectory, at: int) -> SnapshotRef:
    ref = trajectory.snapshot(at)
    assert ref is not None, "states begin and end at boundaries, which are snapshotted"
    return ref
