"""The rubric's form, and that each check answers for its own artifact."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from bat_medimaging.items import ITEMS


def test_items_are_short_and_known(helpers: Any) -> None:
    assert len({item.id for item in ITEMS}) == len(ITEMS) == len({item.name for item in ITEMS})
    assert max(len(item.criterion) for item in ITEMS) <= 50
    assert {item.name for item in ITEMS} == set(helpers.CHECKS)


def test_the_outcome_item_weighs_half(helpers: Any) -> None:
    for task in helpers.every_kind():
        for stage in helpers.CONTRACT.stages():
            rubric = helpers.CONTRACT.rubric(task, stage.id, task.stratum)
            heaviest = max(item.weight for item in rubric.items)
            assert heaviest * 2 == sum(item.weight for item in rubric.items)
            assert 5 <= len(rubric.items) <= 8


def test_conditional_items_apply_only_where_their_fault_is(helpers: Any) -> None:
    def ids(track: str, stratum: str, stage: str) -> set[str]:
        task = helpers.tasks(track, stratum, stage)[0]
        return {item.id for item in helpers.CONTRACT.rubric(task, stage, task.stratum).items}

    plain = {stage: ids("segmentation", "success", stage) for stage in ("S1", "S2", "S3", "S4", "S5")}
    for stage, item in (("S1", "S1.f"), ("S2", "S2.e"), ("S3", "S3.e"), ("S4", "S4.f"), ("S5", "S5.e")):
        assert item not in plain[stage] and item in ids("segmentation", "recovery", stage)
        assert item in ids("classification", "recovery", stage)
    assert "S5.g" in ids("segmentation", "failure", "S5")


LOSSES = {
    "plan/plan.md": {"S1.a", "S1.b", "S1.c", "S1.d", "S1.e", "S1.f", "S1.g", "S2.d"},
    "setup/environment.json": {"S2.c"},
    "outputs/submission.json": {"S5.a", "S5.b", "S5.c", "S5.d", "S5.e", "S5.f", "S5.g", "S5.h"},
    "outputs/failed_cases.json": {"S4.f", "S5.g"},
}


def test_a_missing_artifact_costs_its_own_items_only(helpers: Any, runs: Any) -> None:
    for run in runs:
        for path, expected in LOSSES.items():
            if path in run.evidence.files:
                left = {name: data for name, data in run.evidence.files.items() if name != path}
                verdicts = helpers.judge(dataclasses.replace(run.evidence, files=left))
                lost = {item for item, verdict in verdicts.items() if not verdict.passed}
                assert lost == expected & set(verdicts), (path, run.task.faults)


def test_needless_repairs_cost(helpers: Any, solve: Any) -> None:
    """In a task without faults, a named conflict, a mirror and a changed setting each cost their item."""
    from bat_medimaging.expert import act, call, infer, plan_settings, submit, validate
    from bat_medimaging.recipe import recipe_of

    tasks = helpers.tasks("segmentation", count=12)
    task = next(task for task in tasks if recipe_of(task).mirrors)
    recipe = recipe_of(task)
    acts = [
        act("S1", call("card", recipe.model)),
        act("S1", call("plan", **{**plan_settings(recipe), "conflict": "axes"})),
        act("S2", call("use", recipe.model, "weights.bak.npz")),
        act("S2", call("load", recipe.model)),
        *validate(recipe),
        act("S3", call("fix", spacing=4.5)),
        act("S3", call("run", recipe.cases[0])),
        *infer(recipe),
        act("S4", call("skip", recipe.cases[0], "truncated")),
        *submit(recipe),
    ]
    verdicts = helpers.judge(solve(task, acts).evidence)
    lost = {item for item, verdict in verdicts.items() if not verdict.passed}
    assert {"S1.g", "S2.f", "S3.f", "S3.d", "S4.c", "S4.g", "S5.h"} <= lost
    assert {"S1.b", "S1.c", "S2.a", "S3.a", "S4.a", "S4.d"}.isdisjoint(lost)


def test_verdicts_on_a_whole_rollout_are_fast(helpers: Any, runs: Any) -> None:
    for run in runs:
        helpers.judge(run.evidence)
    begin = time.process_time()
    for run in runs:
        helpers.judge(dataclasses.replace(run.evidence))
    assert (time.process_time() - begin) / len(runs) <= 0.030  # 15 ms are asked for; tests may share a busy core
