"""The documented settings are the best ones, for both tracks and both geometries."""

from __future__ import annotations

from random import Random
from statistics import mean
from typing import Any

import pytest
from bat_medimaging.recipe import SCALES, flipped, recipe_of
from bat_medimaging.score import balanced_accuracy, task_score
from bat_medimaging.synthesizer import make_task
from bat_medimaging.toolbelt.phx import pipeline, planning
from bat_medimaging.toolbelt.phx.infer import csv_of
from bat_medimaging.workspace import workspace_of

from bat_core.model.task import Stratum

COUNT = {"segmentation": 10, "classification": 24}
MARGIN = 0.1


def mistakes(recipe: Any) -> dict[str, dict[str, Any]]:
    """Return configurations, `correct` first."""
    right = {"model": recipe.model, "weights": "weights.npz", **planning.documented(recipe.card, recipe.track)}
    out: dict[str, dict[str, Any]] = {"correct": {}}
    for one in recipe.models:
        if one.kind != "right":
            out[f"model that is {one.kind}"] = {"model": one.name, "labels": " ".join(one.labels)}
    if recipe.track == "segmentation":
        axes = str(right["axes"])
        out |= {f"axes {which}": {"axes": flipped(axes, which)} for which in ((0,), (2,), (0, 1), (0, 2))}
        out |= {f"spacing {value}": {"spacing": value} for value in (1.5, 4.5, 5.0)}
        out |= {"no window": {"window": "none"}, "wide window": {"window": "-1000 1000"}}
    else:
        labels = str(right["labels"]).split()
        out |= {"channels": {"channels": str(right["channels"])[::-1]}, "no scale": {"scale": 1}}
        out |= {"labels": {"labels": " ".join([*labels[1:], labels[0]])}}
        out |= {f"scale {'up' if s > right['scale'] else 'down'}": {"scale": s} for s in SCALES if s != right["scale"]}
    return {name: {**right, **change} for name, change in out.items()}


def outputs(task: Any, config: dict[str, Any]) -> dict[str, bytes]:
    files, cases = workspace_of(task), recipe_of(task).cases
    if task.track == "segmentation":
        return {f"outputs/{c}/dseg.nii.gz": pipeline.segment_case(files, config, c).blob() for c in cases}
    rows = [(case, pipeline.classify_case(files, config, case).label) for case in cases]
    return {"outputs/predictions.csv": csv_of(rows).encode()}


def measured(track: str, kind: str, count: int) -> dict[str, float]:
    rng = Random(f"{track}:{kind}")
    scores: dict[str, list[float]] = {}
    for _ in range(count):
        task = make_task(rng, track, Stratum.SUCCESS, None, kind)
        for name, config in mistakes(recipe_of(task)).items():
            scores.setdefault(name, []).append(task_score(task, outputs(task, config)))
    return {name: round(mean(values), 3) for name, values in scores.items()}


@pytest.mark.parametrize("kind", ["bank", "blind"])
@pytest.mark.parametrize("track", ["segmentation", "classification"])
def test_every_mistake_costs(track: str, kind: str) -> None:
    scores = measured(track, kind, COUNT[track])
    best = scores.pop("correct")
    assert best >= 0.75
    assert not {name: score for name, score in scores.items() if score > best - MARGIN}


def test_swapped_labels_and_missing_cases_cost(helpers: Any) -> None:
    task = helpers.tasks("segmentation", seed=4)[0]
    right = outputs(task, mistakes(recipe_of(task))["correct"])
    best = task_score(task, right)
    from bat_medimaging.toolbelt.phx import nifti

    swapped = {
        path: nifti.write((mask.data * 2 % 3).astype("u1"), mask.affine)
        for path, blob in right.items()
        if (mask := nifti.read(blob))
    }
    assert task_score(task, swapped) < 0.2
    first = min(right)
    assert task_score(task, {path: blob for path, blob in right.items() if path != first}) < best - 0.15
    assert task_score(task, {}) == 0.0


def test_an_unreadable_case_is_not_expected(helpers: Any, solve: Any) -> None:
    for track in ("segmentation", "classification"):
        task = helpers.tasks(track, "failure", "S4", 1, 2)[0]
        run = solve(task)
        assert task_score(task, run.runner.files()) > 0.6


def test_a_case_with_two_answers_has_none(helpers: Any, solve: Any) -> None:
    task = helpers.tasks("classification", seed=6)[0]
    files = solve(task).runner.files()
    every = "case,label\n" + "".join(f"{c},{k}\n" for c in recipe_of(task).cases for k in recipe_of(task).targets)
    assert task_score(task, {**files, "outputs/predictions.csv": every.encode()}) == 0.0


def test_wrong_targets_in_the_readme_of_a_contradiction_cost(helpers: Any) -> None:
    """Whoever follows a README that contradicts the card pays for it."""
    lost = []
    for track in ("segmentation", "classification"):
        for task in helpers.tasks(track, "recovery", "S1", 10, 7):
            recipe = recipe_of(task)
            right = mistakes(recipe)["correct"]
            wrong = {**right, **{key: recipe.readme[key] for key in recipe.conflicts}}
            lost.append(task_score(task, outputs(task, right)) - task_score(task, outputs(task, wrong)))
    assert mean(lost) > 0.3 and min(lost) > -0.35


def test_one_answer_for_all_cases_is_worth_nothing() -> None:
    assert balanced_accuracy(["a", "a", "b"], ["a", "a", "a"]) == 0.0
    assert balanced_accuracy(["a", "a", "b"], ["a", "a", "b"]) == 1.0
    assert balanced_accuracy(["a", "a", "b"], ["a", "", "b"]) == pytest.approx(0.5)
    assert balanced_accuracy(["a", "a"], ["a", ""]) == 0.5
