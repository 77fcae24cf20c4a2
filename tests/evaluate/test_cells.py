from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bat_core.evaluate.cells import by_stage, by_track, cell, failures, mean
from bat_core.hooks.contract import StageContract
from bat_core.model.reward import Reward, StageScore
from bat_core.model.rubric import Rubric
from bat_core.model.stage import Stage
from bat_core.model.task import Stratum, Task


class Contract(StageContract):
    name = "two"

    def stages(self) -> Sequence[Stage]:
        return [Stage(id=i, title=i, goal=i, weight=w) for i, w in (("A", 0.25), ("B", 0.75))]

    def tracks(self) -> Sequence[str]:
        return ["t", "u"]

    def rubric(self, task: Task, stage: str, stratum: Stratum) -> Rubric:
        raise NotImplementedError

    def workspace(self, task: Task) -> Mapping[str, bytes]:
        return {}

    def protected(self) -> Sequence[str]:
        return []

    def introduction(self, task: Task) -> str:
        return ""

    def task_score(self, task: Task, files: Mapping[str, bytes]) -> float | None:
        return None


def scored(a: float | None, b: float | None, value: float | None, **values: object) -> Reward:
    stages = tuple(
        StageScore(stage=i, score=s, reason="" if s is not None else "null") for i, s in (("A", a), ("B", b))
    )
    return Reward.model_validate({"value": value, "stages": stages} | values)


def test_overall_is_half_agentic_and_half_task_and_agentic_without_one() -> None:
    one = cell(Contract(), "x", "t", 0, scored(1.0, 0.5, 0.6, task=0.2))
    assert one.agentic == pytest.approx(0.25 + 0.375)
    assert one.overall == pytest.approx(0.5 * 0.625 + 0.5 * 0.2)
    assert cell(Contract(), "x", "t", 0, scored(1.0, 0.5, 0.625)).overall == pytest.approx(0.625)


def test_a_null_is_an_invalid_cell_and_never_a_zero() -> None:
    for reward in (scored(None, 1.0, None, reason="judge away"), Reward(value=None, reason="lost")):
        one = cell(Contract(), "x", "t", 0, reward)
        assert not one.valid and one.overall is None and one.stages == {} and one.reason


def test_a_breach_zeroes_the_run() -> None:
    one = cell(Contract(), "x", "t", 0, scored(1.0, 1.0, 0.0, task=1.0, breach="touched"))
    assert one.valid and one.overall == 0 and one.stages == {"A": 0, "B": 0} and one.task == 0 and not one.finished
    assert cell(Contract(), "x", "t", 0, scored(None, 1.0, 0.0, breach="touched")).overall == 0


def test_where_a_run_first_fell_short() -> None:
    assert cell(Contract(), "x", "t", 0, scored(1.0, 0.5, 0.6)).failed_at == "B"
    done = cell(Contract(), "x", "t", 0, scored(1.0, 1.0, 1.0))
    assert done.finished and done.failed_at == ""


def test_aggregates_skip_invalid_cells() -> None:
    cells = [
        cell(Contract(), "x", "t", 0, scored(1.0, 0.5, 0.6)),
        cell(Contract(), "y", "t", 0, scored(0.0, 0.5, 0.6)),
        cell(Contract(), "z", "u", 0, Reward(value=None, reason="lost")),
    ]
    assert by_stage(cells, ["A", "B", "C"]) == {"A": 0.5, "B": 0.5, "C": None}
    assert by_track(cells, ["t", "u"]) == {"t": pytest.approx(0.5), "u": None}
    assert failures(cells, ["A", "B"]) == {"A": 1, "B": 1}
    assert failures(cells, ["B"]) == {"B": 1}
    assert mean([None, 1.0, 0.0]) == 0.5 and mean([None]) is None and mean([]) is None
