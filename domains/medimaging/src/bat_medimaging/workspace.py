"""The files with which a task starts, and the truth that stays outside."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bat_core.model.task import Task
from bat_medimaging import phantom, picture, texts
from bat_medimaging.recipe import Candidate, Recipe, recipe_of
from bat_medimaging.toolbelt.phx.setup import input_path
from bat_medimaging.toolbelt.phx.weights import sha_of

SKILLS = Path(__file__).parent / "skills"
PROTECTED = ("data/", "models/", "skills/")


def workspace_of(task: Task) -> Mapping[str, bytes]:
    """Return the files with which `task` starts."""
    return rendered(TaskKey(task))[0]


def truth_of(task: Task) -> Mapping[str, Any]:
    """Return the truth by case: a label volume, or a class name."""
    return rendered(TaskKey(task))[1]


class TaskKey:
    """A task as a cache key: equal tasks have equal recipes."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.key = (task.id, task.version, task.track, task.seed, str(task.private), task.faults, str(task.public))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskKey) and self.key == other.key


@lru_cache(maxsize=128)
def rendered(key: TaskKey) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return start files and truth of a task."""
    recipe = recipe_of(key.task)
    files: dict[str, bytes] = {}
    truth: dict[str, Any] = {}
    classes = picture.classes_of(recipe.seed, len(recipe.cases))
    for number, case in enumerate(recipe.cases):
        image, answer = _case(recipe, number, classes[number])
        truth[case] = answer
        files[input_path(recipe.track, case)] = spoilt(image, recipe.corrupt.get(case))
    for one in recipe.models:
        files |= _model_files(recipe, one)
    files["data/task.json"] = _json(task_json(recipe))
    files["data/template.json"] = _json(
        {"settings": recipe.settings, "writer": recipe.writer, "rule7": list(recipe.rule7)}
    )
    files["data/README.md"] = texts.readme(recipe).encode()
    files |= {f"skills/{path.name}": path.read_bytes() for path in sorted(SKILLS.glob("*.md"))}
    return files, truth


def task_json(recipe: Recipe) -> dict[str, Any]:
    """Return the public contract of a task."""
    segmentation = recipe.track == "segmentation"
    shared = {
        "schema": 1,
        "task_id": recipe.task,
        "track": recipe.track,
        "targets": list(recipe.targets),
        "cases": list(recipe.cases),
        "models": [one.name for one in recipe.models],
    }
    if segmentation:
        labels = {"0": "background", "1": recipe.targets[0], "2": recipe.targets[1]}
        pattern = "outputs/{case}/dseg.nii.gz"
        return {**shared, "output": {"path": pattern, "dtype": "uint8", "labels": labels, "grid": "as the input"}}
    return {**shared, "output": {"path": "outputs/predictions.csv", "columns": ["case", "label"]}}


def spoilt(blob: bytes, how: str | None) -> bytes:
    """Return an input file as a bad transfer leaves it."""
    if how == "truncated":
        return blob[: len(blob) // 2]
    if how == "damaged":
        return blob[:2] + b"\0" + blob[3:]
    return b"" if how == "empty" else blob


def _case(recipe: Recipe, number: int, kind: int) -> tuple[bytes, Any]:
    if recipe.track == "segmentation":
        volume = phantom.render(recipe.seed, number, recipe.card["side"], recipe.kind)
        return volume.image, volume.truth
    return picture.render(recipe.seed, number, recipe.kind, kind).image, recipe.targets[kind]


def _model_files(recipe: Recipe, one: Candidate) -> dict[str, bytes]:
    """Return a model's folder, its weights spoilt where the task says so."""
    card = dict(recipe.card)
    if recipe.track == "segmentation":
        arrays = phantom.model_arrays(card, one.kind)
    else:
        arrays = picture.model_arrays(card, recipe.targets, one.labels)
    good = npz(arrays)
    sha = sha_of(good)
    folder = f"models/{one.name}"
    right = one.kind == "right"
    mirrors = list(recipe.mirrors) if right else []
    described = {**card, "model": one.name, "labels": list(one.labels), "mirrors": mirrors}
    files = {
        f"{folder}/card.json": _json(described),
        f"{folder}/model_card.md": texts.model_card(one, card, sha).encode(),
        f"{folder}/weights.sha256": f"{sha}  weights.npz\n".encode(),
        f"{folder}/weights.npz": good[: len(good) * 3 // 5] if right and "U3" in recipe.faults else good,
    }
    stale = npz({name: value if value.dtype.kind == "U" else value * 0.5 for name, value in arrays.items()})
    bad = set(mirrors[:1]) if "U6" in recipe.faults else set()
    return files | {f"{folder}/{name}": stale if name in bad else good for name in mirrors}


def npz(arrays: Mapping[str, Any]) -> bytes:
    """Return arrays as an uncompressed archive; equal arrays give equal bytes."""
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue()


def _json(value: object) -> bytes:
    return (json.dumps(value, sort_keys=True, indent=1) + "\n").encode()
