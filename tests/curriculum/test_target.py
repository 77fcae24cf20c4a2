from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bat_core.config.schema import Config
from bat_core.curriculum.target import choose_target
from bat_core.curriculum.weakest_stage import WeakestStage
from bat_core.errors import EvaluatorError
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History
from bat_core.model.stage import Stage

Make = Callable[..., Diagnosis]
Past = Callable[..., History]


def test_the_weakest_stage_is_practised(diagnosis: Make, history: Past, stages: list[Stage]) -> None:
    found = choose_target(history(diagnosis({"A": 0.6, "B": 0.2, "C": 0.3})), stages)
    assert found == ("B", "B is weakest, at 20.0")


def test_ties_go_to_the_earliest_stage(diagnosis: Make, history: Past, stages: list[Stage]) -> None:
    assert choose_target(history(diagnosis({"C": 0.2, "B": 0.2, "A": 0.5})), stages).stage == "B"
    held = diagnosis(gains={"A": 0.1, "C": -0.1, "B": -0.1})
    assert choose_target(history(diagnosis(), ("held", held)), stages).stage == "B"


def test_a_stage_without_a_score_is_not_chosen(diagnosis: Make, history: Past, stages: list[Stage]) -> None:
    assert choose_target(history(diagnosis({"A": None, "B": 0.9})), stages).stage == "B"
    with pytest.raises(EvaluatorError, match="no stage could be judged, so no target can be chosen; see"):
        choose_target(history(diagnosis({"A": None, "B": None, "C": None})), stages)


@pytest.mark.parametrize("outcome", ["held", "rolled_back"])
def test_after_a_round_without_promotion_what_regressed_most_is_practised(
    diagnosis: Make, history: Past, stages: list[Stage], outcome: str
) -> None:
    worse = diagnosis({"A": 0.1, "B": 0.9, "C": 0.5}, gains={"A": 0.2, "B": -0.05, "C": -0.01})
    assert choose_target(history(diagnosis(), (outcome, worse)), stages) == ("B", "B regressed most, by 5.0 points")


def test_after_a_promotion_a_regression_is_no_reason(diagnosis: Make, history: Past, stages: list[Stage]) -> None:
    better = diagnosis({"A": 0.1, "B": 0.9, "C": 0.5}, gains={"A": 0.2, "B": -0.02, "C": 0.0})
    assert choose_target(history(diagnosis(), ("promoted", better)), stages).stage == "A"


def test_the_weakest_stage_is_that_of_the_policy_that_goes_on(
    diagnosis: Make, history: Past, stages: list[Stage]
) -> None:
    start = diagnosis({"A": 0.1, "B": 0.5, "C": 0.5})
    candidate = diagnosis({"A": 0.5, "B": 0.1, "C": 0.5})  # nothing regressed against theta*
    assert choose_target(history(start, ("held", candidate)), stages).stage == "B"
    assert choose_target(history(start, ("held", candidate)), stages, restart=True).stage == "A"
    assert choose_target(history(start, ("rolled_back", candidate)), stages).stage == "A"
    assert choose_target(history(start, ("promoted", candidate)), stages, restart=True).stage == "B"


SCORE = st.none() | st.floats(0, 1)
GAIN = st.none() | st.floats(-1, 1)
ROUND = st.tuples(
    st.sampled_from(["promoted", "held", "rolled_back"]),
    st.tuples(SCORE, SCORE, st.floats(0, 1)),
    st.tuples(GAIN, GAIN, GAIN),
)


def plain_target(past: History, stages: list[Stage], restart: bool) -> str:
    if past.rounds and past.rounds[-1].decision.outcome != "promoted":
        worst, loss = "", 0.0
        for stage in stages:
            gain = past.rounds[-1].diagnosis.stage_gains.get(stage.id)
            if gain is not None and -gain.mean > loss:
                worst, loss = stage.id, -gain.mean
        if worst:
            return worst
    start = past.best
    if past.rounds and past.rounds[-1].decision.outcome == "held" and not restart:
        start = past.rounds[-1].diagnosis
    weakest, low = "", 2.0
    for stage in stages:
        score = start.stages.get(stage.id)
        if score is not None and score < low:
            weakest, low = stage.id, score
    return weakest


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROUND, max_size=4), st.sampled_from(["continue", "restart"]), st.sampled_from([4, 8, 12]))
def test_a_prescription_names_only_existing_stages_and_is_a_pure_function(
    diagnosis: Make, history: Past, stages: list[Stage], rounds: list[Any], on_hold: str, groups: int
) -> None:
    made = [
        (outcome, diagnosis(dict(zip("ABC", scores, strict=True)), gains=dict(zip("ABC", gains, strict=True))))
        for outcome, scores, gains in rounds
    ]
    past = history(diagnosis({"A": 0.3, "B": 0.2, "C": 0.4}), *made)
    config = Config.model_validate({"gate": {"on_hold": on_hold}, "train": {"groups": groups}})
    mixture = WeakestStage(config).prescribe(past, stages)
    assert mixture == WeakestStage(config).prescribe(past, stages)
    assert mixture.target == plain_target(past, stages, on_hold == "restart")
    assert mixture.target not in mixture.mix and {mixture.target, *mixture.mix} == {stage.id for stage in stages}
    assert mixture.groups == {"target": groups // 2, "mix": groups // 4, "e2e": groups // 4}
    assert mixture.round == len(rounds) + 1
