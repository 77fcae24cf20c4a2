"""Task scores: macro mean Dice, and balanced accuracy above chance, over the cases that can be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bat_core.model.task import Task
from bat_medimaging.recipe import recipe_of
from bat_medimaging.toolbelt.phx import nifti
from bat_medimaging.toolbelt.phx.infer import rows_of
from bat_medimaging.toolbelt.phx.pipeline import PREDICTIONS
from bat_medimaging.toolbelt.phx.place import text_of
from bat_medimaging.workspace import truth_of

Array = NDArray[Any]


def task_score(task: Task, files: Mapping[str, bytes]) -> float:
    """Return the score of the outputs in `files`; a missing case counts 0."""
    cases = recipe_of(task).readable
    truth = truth_of(task)
    if task.track == "segmentation":
        return float(np.mean([case_dice(files.get(f"outputs/{case}/dseg.nii.gz"), truth[case]) for case in cases]))
    rows = rows_of(text_of(files, PREDICTIONS))
    given: dict[str, str] = {}
    for case, label in rows:
        # A case with two different answers has none.
        given[case] = label if given.get(case, label) == label else ""
    return balanced_accuracy([truth[case] for case in cases], [given.get(case, "") for case in cases])


def case_dice(blob: bytes | None, truth: Array) -> float:
    """Return the mean Dice of organ and lesion of one case."""
    try:
        mask = nifti.read(blob).data
    except nifti.Unreadable:
        return 0.0
    return 0.0 if mask.shape != truth.shape else float(np.mean([dice(mask == k, truth == k) for k in (1, 2)]))


def dice(one: Array, other: Array) -> float:
    """Return the Dice coefficient of two masks; 1 if both are empty."""
    total = int(one.sum()) + int(other.sum())
    return 2.0 * int((one & other).sum()) / total if total else 1.0


def balanced_accuracy(truth: list[str], given: list[str]) -> float:
    """Return the mean recall over the classes that occur in `truth`, above what one answer for all would have.

    One answer for all cases has a mean recall of 1 / classes without having looked at any; it is worth 0 here.
    """
    recalls = []
    for label in sorted(set(truth)):
        places = [place for place, value in enumerate(truth) if value == label]
        recalls.append(sum(given[place] == label for place in places) / len(places))
    mean, chance = sum(recalls) / len(recalls), 1 / len(recalls)
    return mean if len(recalls) == 1 else max(0.0, (mean - chance) / (1 - chance))
