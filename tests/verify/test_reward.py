from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.model.reward import Reward
from bat_core.model.rubric import Cap, Rubric, RubricItem
from bat_core.model.verdict import ItemVerdict
from bat_core.verify.reward import evidence_factor, item_mean, reward, stage_scores, unscorable

Case = tuple[tuple[Rubric, ...], dict[str, list[ItemVerdict]]]


@st.composite
def cases(draw: st.DrawFn, *, nulls: bool = True, equal: bool = False, caps: bool = True, stages: int = 3) -> Case:
    rubrics, verdicts = [], {}
    for stage in "ABC"[: draw(st.integers(1, stages))]:
        ids = [f"{stage}.{n}" for n in range(draw(st.integers(1, 4)))]
        weights = [1.0 if equal else draw(st.sampled_from([0.5, 1.0, 2.0, 3.0])) for _ in ids]
        items = tuple(
            RubricItem(id=i, criterion="?", verifier="check:x", weight=w) for i, w in zip(ids, weights, strict=True)
        )
        capped = tuple(
            Cap(item=i, at_most=draw(st.sampled_from([0.0, 0.2, 0.5]))) for i in ids if caps and draw(st.booleans())
        )
        rubrics.append(Rubric(stage=stage, items=items, caps=capped))
        outcomes = st.sampled_from([True, False, None] if nulls else [True, False])
        verdicts[stage] = [
            ItemVerdict(
                item=i, passed=draw(outcomes), evidence=draw(st.floats(0, 1)), claimed=draw(st.booleans()), reason="why"
            )
            for i in ids
        ]
    return tuple(rubrics), verdicts


def plain_eta(verdicts: Sequence[ItemVerdict]) -> float:
    total, count = 0.0, 0
    for verdict in verdicts:
        if verdict.passed is True or verdict.claimed:
            total += verdict.evidence
            count += 1
    return 1.0 if count == 0 else total / count


def plain_score(rubric: Rubric, verdicts: Sequence[ItemVerdict], eta: float) -> float | None:
    """score_s = eta * sum of w v / sum of w, the mean capped by the contract."""
    numerator = denominator = 0.0
    ceiling = 1.0
    for item in rubric.items:
        (verdict,) = [v for v in verdicts if v.item == item.id]
        if verdict.passed is None:
            return None
        numerator += item.weight * (1 if verdict.passed else 0)
        denominator += item.weight
        for cap in rubric.caps:
            if cap.item == item.id and not verdict.passed:
                ceiling = min(ceiling, cap.at_most)
    return eta * min(ceiling, numerator / denominator)


def scored(case: Case) -> Reward:
    rubrics, verdicts = case
    return reward(stage_scores(rubrics, verdicts), None, None, e2e=False)


@given(cases())
def test_stage_scores_are_those_of_the_plain_formula(case: Case) -> None:
    rubrics, verdicts = case
    eta = plain_eta([verdict for rubric in rubrics for verdict in verdicts[rubric.stage]])
    for rubric, score in zip(rubrics, stage_scores(rubrics, verdicts), strict=True):
        expected = plain_score(rubric, verdicts[rubric.stage], eta)
        assert (score.score is None) == (expected is None)
        assert score.score == pytest.approx(expected, abs=1e-12) or expected is None
        assert score.evidence == pytest.approx(eta)
        assert bool(score.reason) == (expected is None)


@given(cases(stages=1))
def test_a_stages_reward_is_its_score_and_null_is_not_zero(case: Case) -> None:
    rubrics, verdicts = case
    found = scored(case)
    expected = plain_score(rubrics[0], verdicts["A"], plain_eta(verdicts["A"]))
    assert (found.value is None) == (expected is None) == (found.nulls > 0)
    assert found.value is None or 0 <= found.value <= 1
    assert found.value is None or found.value == pytest.approx(expected, abs=1e-12)
    assert found.items == len(rubrics[0].items)


@given(cases(), st.floats(0, 1) | st.none(), st.floats(0, 1) | st.none())
def test_an_e2e_reward_is_half_agentic_and_half_task(case: Case, agentic: float | None, task: float | None) -> None:
    rubrics, verdicts = case
    found = reward(stage_scores(rubrics, verdicts), agentic, task, e2e=True)
    judged = all(v.passed is not None for one in verdicts.values() for v in one)
    if not judged or agentic is None:
        assert found.value is None and found.reason
    elif task is None:
        assert found.value == agentic
    else:
        assert found.value == pytest.approx(0.5 * agentic + 0.5 * task)


@given(cases(), st.floats(0, 1), st.booleans())
def test_a_breach_is_worth_nothing_even_where_something_is_null(case: Case, agentic: float, e2e: bool) -> None:
    rubrics, verdicts = case
    found = reward(stage_scores(rubrics, verdicts), agentic, 1.0, e2e=e2e, breach="protected path x was changed")
    assert found.value == 0.0
    assert found.breach == found.reason == "protected path x was changed"


@given(cases(nulls=False, equal=True, caps=False, stages=1), st.randoms(use_true_random=False))
def test_passing_one_more_item_never_costs_anything(case: Case, rng: random.Random) -> None:
    rubrics, verdicts = case
    failed = [n for n, verdict in enumerate(verdicts["A"]) if not verdict.passed]
    if not failed:
        return
    better = list(verdicts["A"])
    n = rng.choice(failed)
    better[n] = better[n].model_copy(update={"passed": True})
    before, after = scored(case).value, scored((rubrics, {"A": better})).value
    assert before is not None and after is not None and after >= before - 1e-12


@given(cases(nulls=False, stages=1))
def test_with_full_evidence_more_passes_never_cost_anything(case: Case) -> None:
    rubrics, verdicts = case
    full = [verdict.model_copy(update={"evidence": 1.0}) for verdict in verdicts["A"]]
    value = scored((rubrics, {"A": full})).value
    for n, verdict in enumerate(full):
        passed = [*full[:n], verdict.model_copy(update={"passed": True}), *full[n + 1 :]]
        after = scored((rubrics, {"A": passed})).value
        assert value is not None and after is not None and after >= value - 1e-12


@given(cases(nulls=False, stages=1), st.floats(0, 1))
def test_more_evidence_never_costs_anything(case: Case, more: float) -> None:
    rubrics, verdicts = case
    value = scored(case).value
    for n, verdict in enumerate(verdicts["A"]):
        richer = verdict.model_copy(update={"evidence": max(more, verdict.evidence)})
        after = scored((rubrics, {"A": [*verdicts["A"][:n], richer, *verdicts["A"][n + 1 :]]})).value
        assert value is not None and after is not None and after >= value - 1e-12


@given(cases(stages=1), st.randoms(use_true_random=False))
def test_the_order_of_items_and_verdicts_does_not_matter(case: Case, rng: random.Random) -> None:
    rubrics, verdicts = case
    items, answers = list(rubrics[0].items), list(verdicts["A"])
    rng.shuffle(items)
    rng.shuffle(answers)
    turned = scored(((rubrics[0].model_copy(update={"items": tuple(items)}),), {"A": answers}))
    value = scored(case).value
    assert (turned.value is None) == (value is None)
    assert value is None or turned.value == pytest.approx(value, abs=1e-12)


def test_an_honest_failure_does_not_lower_eta_but_a_claim_does() -> None:
    passed = ItemVerdict(item="a", passed=True, evidence=1.0)
    honest = ItemVerdict(item="b", passed=False, evidence=0.0)
    assert evidence_factor([passed, honest]) == 1.0
    assert evidence_factor([passed, honest.model_copy(update={"claimed": True})]) == 0.5
    assert evidence_factor([]) == 1.0


def test_a_cap_holds_only_where_its_item_fails() -> None:
    items = tuple(RubricItem(id=i, criterion="?", verifier="check:x") for i in "ab")
    rubric = Rubric(stage="A", items=items, caps=(Cap(item="b", at_most=0.2),))
    verdicts = [ItemVerdict(item="a", passed=True), ItemVerdict(item="b", passed=False)]
    assert item_mean(rubric, verdicts) == 0.2
    assert item_mean(rubric, [verdicts[0], verdicts[1].model_copy(update={"passed": True})]) == 1.0


def test_a_lost_rollout_is_null_with_the_reason() -> None:
    assert unscorable("the sandbox died").value is None
    assert unscorable("the sandbox died").reason == "the sandbox died"


def test_a_reward_names_the_null_item() -> None:
    rubric = Rubric(stage="A", items=(RubricItem(id="A.a", criterion="?", verifier="check:x"),))
    verdicts: Mapping[str, list[ItemVerdict]] = {"A": [ItemVerdict(item="A.a", passed=None, reason="judge away")]}
    found = reward(stage_scores([rubric], verdicts), None, None, e2e=False)
    assert found.reason == "could not be judged: A.a: judge away"
