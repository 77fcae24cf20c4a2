"""The expert earns everything, with and without mistakes on the way."""

from __future__ import annotations

from random import Random
from typing import Any

STAGES = ("S1", "S2", "S3", "S4", "S5")


def unearned(helpers: Any, evidence: Any, stages: tuple[str, ...] = STAGES) -> dict[str, str]:
    verdicts = helpers.judge(evidence, stages)
    return {item: v.reason for item, v in verdicts.items() if not v.passed or v.evidence < 1}


def test_the_expert_earns_every_item_with_full_evidence(helpers: Any, runs: Any) -> None:
    for run in runs:
        assert not unearned(helpers, run.evidence), (run.task.track, run.task.faults, run.lines)


def test_mistakes_on_the_way_spoil_nothing(helpers: Any, slipped: Any) -> None:
    assert sum(act.kind == "slip" for run in slipped for act, *_ in run.after) > 40
    for run in slipped:
        assert not unearned(helpers, run.evidence), (run.task.track, run.task.faults, run.lines)


def test_a_novice_s_mistakes_mostly_stand(helpers: Any, solve: Any) -> None:
    kinds = helpers.every_kind(seed=1)
    novices = [solve(task, helpers.acts_of(helpers.DOMAIN.novice(task, Random(n)))) for n, task in enumerate(kinds)]
    spoilt = [run for run in novices if unearned(helpers, run.evidence)]
    assert len(kinds) / 2 < len(spoilt) < len(kinds)
    for stage in STAGES:
        share = sum(bool(unearned(helpers, run.evidence, (stage,))) for run in novices) / len(novices)
        assert 0.1 < share < 0.9, (stage, share)


def test_each_stage_can_be_earned_from_its_boundary(helpers: Any, runs: Any, slipped: Any) -> None:
    for run in [*runs, *slipped]:
        for stage in STAGES:
            assert not unearned(helpers, run.part(stage), (stage,)), (run.task.faults, stage)


def test_each_stage_can_be_earned_right_after_a_symptom_or_a_slip(helpers: Any, runs: Any, slipped: Any) -> None:
    for run in [*runs, *slipped]:
        for at, (act, *_) in enumerate(run.after):
            if act.kind != "step" and at < run.last_of[act.stage]:
                assert not unearned(helpers, run.part(act.stage, at), (act.stage,)), (run.task.faults, act)


def test_every_planted_fault_shows_in_an_observation(helpers: Any, runs: Any, slipped: Any) -> None:
    catalogue = {fault.id: fault for fault in helpers.DOMAIN.faults()}
    for run in [*runs, *slipped]:
        shown = [out for act, out, *_ in run.after if act.kind == "symptom"]
        for fault in run.task.faults:
            assert any(catalogue[fault].symptom in out for out in shown), (fault, shown)
        assert run.task.faults or not shown


def test_no_symptom_shows_where_nothing_is_planted(helpers: Any, solve: Any) -> None:
    words = ("differs", "mismatch", " not ", " off", "stopped", "F1", "F2", "F3", "F5", "lesion 0 ")
    for track in helpers.CONTRACT.tracks():
        for task in helpers.tasks(track, count=6, seed=9):
            assert not [line for line in solve(task).lines if any(word in line for word in words)]


def test_actions_and_observations_are_short(helpers: Any, runs: Any) -> None:
    for run in runs:
        calls = [act.message.tool_calls[0].arguments["code"] for act, *_ in run.after if act.message.tool_calls]
        assert 11 <= len(calls) <= 17
        assert max(len(code) for code in calls) <= 100
        assert max(len(line) for line in run.lines) <= 135
        assert all(line.count("\n") <= 1 for line in run.lines)
        assert str(run.runner.root) not in "".join(run.lines)


def test_two_runs_print_and_write_the_same(helpers: Any, solve: Any) -> None:
    for task in helpers.tasks("segmentation", "failure", "S5", 1, 3) + helpers.tasks("classification", count=1):
        one, two = solve(task), solve(task)
        assert one.lines == two.lines
        assert one.runner.files() == two.runner.files()


def test_the_expert_follows_from_the_history_alone(helpers: Any) -> None:
    task = helpers.tasks("segmentation", "recovery", "S3")[0]
    acts = helpers.acts_of(helpers.DOMAIN.expert(task, Random(3)))
    history = [act.message for act in acts[:5]]
    assert helpers.DOMAIN.expert(task, Random(3)).act(history) == acts[5]
    assert helpers.DOMAIN.expert(task, Random(3)).act([act.message for act in acts]) is None
