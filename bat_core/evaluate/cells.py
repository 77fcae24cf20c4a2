"""Cells: one task, one repeat, one policy. They never leave the evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bat_core.hooks.contract import StageContract
from bat_core.model.base import Value
from bat_core.model.reward import Reward


class Cell(Value):
    """Scores of one run through the workflow. `valid` is False if a stage or the run could not be judged."""

    task_id: str
    track: str
    repeat: int
    valid: bool
    stages: dict[str, float | None]
    agentic: float | None = None
    task: float | None = None
    overall: float | None = None
    finished: bool = False
    failed_at: str = ""
    reason: str = ""


def cell(contract: StageContract, task_id: str, track: str, repeat: int, reward: Reward) -> Cell:
    """Return the cell of a scored E2E rollout: overall = .5 agentic + .5 task; a breach zeroes the run."""
    if reward.value is None:
        return Cell(task_id=task_id, track=track, repeat=repeat, valid=False, stages={}, reason=reward.reason)
    zero = bool(reward.breach)
    stages = {stage.stage: 0.0 if zero else stage.score for stage in reward.stages}
    task = 0.0 if zero and reward.task is not None else reward.task
    agentic = contract.aggregate(stages)
    if agentic is None:
        return Cell(task_id=task_id, track=track, repeat=repeat, valid=False, stages={}, reason="a stage is null")
    short = [stage for stage, score in stages.items() if (score or 0) < 1 - 1e-9]
    return Cell(
        task_id=task_id,
        track=track,
        repeat=repeat,
        valid=True,
        stages=stages,
        agentic=agentic,
        task=task,
        overall=agentic if task is None else 0.5 * agentic + 0.5 * task,
        finished=not short,
        failed_at=short[0] if short else "",
    )


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is not null, None if nothing is; rounded so that no detail rides along."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 6) if known else None


def by_stage(cells: Sequence[Cell], stages: Sequence[str]) -> dict[str, float | None]:
    """Return the mean score of each stage over valid cells."""
    return {stage: mean([one.stages.get(stage) for one in cells if one.valid]) for stage in stages}


def by_track(cells: Sequence[Cell], tracks: Sequence[str]) -> dict[str, float | None]:
    """Return the mean overall of each track over valid cells."""
    return {track: mean([one.overall for one in cells if one.valid and one.track == track]) for track in tracks}


def failures(cells: Sequence[Cell], allowed: Sequence[str]) -> dict[str, int]:
    """Return how many valid cells first fell short at each stage, for the keys that may cross."""
    counts: Mapping[str, int] = {key: sum(one.valid and one.failed_at == key for one in cells) for key in allowed}
    return {key: count for key, count in counts.items() if count}
