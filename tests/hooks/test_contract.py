from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.errors import ContractError
from bat_core.hooks.contract import StageContract
from bat_core.hooks.domain import Domain
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.stage import Stage
from bat_core.model.task import Stratum, Task

WEIGHTS = {"A": 0.25, "B": 0.15, "C": 0.35}


class Contract(StageContract):
    name = "three"

    def stages(self) -> Sequence[Stage]:
        return [Stage(id=i, title=f"Part {i}", goal=f"Do {i}.", weight=w) for i, w in WEIGHTS.items()]

    def tracks(self) -> Sequence[str]:
        return ["t"]

    def rubric(self, task: Task, stage: str, stratum: Stratum) -> Rubric:
        return Rubric(stage=stage, items=(RubricItem(id=f"{stage}.a", criterion=f"{stage} done?", verifier="check:x"),))

    def workspace(self, task: Task) -> Mapping[str, bytes]:
        return {}

    def protected(self) -> Sequence[str]:
        return []

    def introduction(self, task: Task) -> str:
        return "Hello."

    def task_score(self, task: Task, files: Mapping[str, bytes]) -> float | None:
        return None


SCORES = st.dictionaries(st.sampled_from(sorted(WEIGHTS)), st.floats(0, 1) | st.none())


@given(SCORES)
def test_the_aggregate_is_the_weighted_mean_over_stages_that_apply(scores: dict[str, float | None]) -> None:
    found = Contract().aggregate(scores)
    if not scores or None in scores.values():
        assert found is None
        return
    numerator = denominator = 0.0
    for stage, score in scores.items():
        assert score is not None
        numerator += WEIGHTS[stage] * score
        denominator += WEIGHTS[stage]
    assert found == pytest.approx(numerator / denominator, abs=1e-12)
    assert found is not None and 0 <= found <= 1


@given(SCORES)
def test_the_aggregate_does_not_depend_on_order(scores: dict[str, float | None]) -> None:
    backwards = {stage: scores[stage] for stage in reversed(list(scores))}
    assert Contract().aggregate(scores) == pytest.approx(Contract().aggregate(backwards), abs=1e-12, nan_ok=False) or (
        Contract().aggregate(scores) is None and Contract().aggregate(backwards) is None
    )


def test_the_opening_discloses_goals_and_criteria_in_order() -> None:
    contract, task = Contract(), Task(id="t", domain="d", track="t", seed=0, private={"answer": "42"})
    text = contract.opening(task, [contract.rubric(task, s.id, Stratum.SUCCESS) for s in contract.stages()])
    assert text.splitlines()[0] == "Stage A Part A: Do A. Rubric: A done?."
    assert [line.split()[1] for line in text.splitlines()] == ["A", "B", "C"]
    assert "42" not in text


def test_a_domain_without_a_suite_says_what_to_implement() -> None:
    class Bare(Domain):
        title = "bare"

        def contract(self) -> StageContract:
            return Contract()

        def synthesizer(self) -> object:  # type: ignore[override]
            return None

        def expert(self, task: Task, slips: object = None) -> object:  # type: ignore[override]
            return None

        def verifiers(self) -> dict[str, object]:  # type: ignore[override]
            return {}

    with pytest.raises(ContractError, match=r"domain 'bare' has no blind suite; implement Domain\.evaluator"):
        Bare().evaluator("blind", {})
    assert (
        Bare().defaults() == {}
        and Bare().workflow() is None
        and Bare().cheats(Task(id="t", domain="d", track="t", seed=0)) == ()
    )
