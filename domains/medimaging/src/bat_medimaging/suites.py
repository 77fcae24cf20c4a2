"""The held-out and the blind suite: tasks that no policy may ever be trained on."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from bat_core.model.leakage import HeldoutItem
from bat_core.model.task import Stratum, Task
from bat_medimaging.recipe import recipe_of
from bat_medimaging.synthesizer import TRACKS, VERSION, make_task
from bat_medimaging.texts import origins
from bat_medimaging.workspace import truth_of

Kind = Literal["identifier", "text", "answer", "secret"]
DEFAULT_COUNT = 12
STRATA = (Stratum.SUCCESS, Stratum.RECOVERY, Stratum.FAILURE)
STAGES = ("S1", "S2", "S3", "S4", "S5")


def heldout_tasks(count: int, key: str = "") -> list[Task]:
    """Return held-out tasks: like the bank's, from a seed space that the bank never draws from.

    Args:
        count: How many; more tasks start with fewer tasks' ones.
        key: A secret of the evaluator, if the published tasks shall not be the ones that count.
    """
    return _suite("heldout", count, key)


def blind_tasks(count: int, key: str = "") -> list[Task]:
    """Return blind tasks: another geometry, another wording, and a fault that stands nowhere else."""
    return _suite("blind", count, key)


def heldout_items(tasks: Sequence[Task]) -> list[HeldoutItem]:
    """Return what of `tasks` must never be trained on."""
    return [
        HeldoutItem(item_id=f"{task.id}-{place}", task=task.id, kind=kind, text=text)
        for task in tasks
        for place, (kind, text) in enumerate(_private(task))
    ]


def _private(task: Task) -> list[tuple[Kind, str]]:
    """Return kind and text of everything about a task that nobody else may know."""
    texts: list[tuple[Kind, str]] = [("text", text) for text in origins(recipe_of(task))]
    return [("identifier", task.id), *texts, ("answer", _answer(task)), ("secret", str(task.private["seed"]))]


def _answer(task: Task) -> str:
    """Return the truth as it would stand in a text: voxel counts, or rows of a predictions file."""
    truth = truth_of(task)
    if task.track == "segmentation":
        return "; ".join(f"{case} {int((mask == 1).sum())} {int((mask == 2).sum())}" for case, mask in truth.items())
    return " ".join(f"{case},{label}" for case, label in truth.items())


def _suite(name: str, count: int, key: str) -> list[Task]:
    """Return `count` tasks, balanced over tracks, then strata, then fault stages."""
    rng = Random(f"{name}:{VERSION}:{key}")
    return [_task(name, rng, place) for place in range(count)]


def _task(name: str, rng: Random, place: int) -> Task:
    track, stratum = TRACKS[place % 2], STRATA[place // 2 % 3]
    # Blind recoveries of S5 use F1, which neither the bank nor the held-out suite plants.
    task = make_task(rng, track, stratum, STAGES[place // 6 % 5], name)
    if name == "blind" and stratum is Stratum.RECOVERY and place // 6 % 2 == 0:
        task = task.model_copy(update={"faults": ("F1",)})
    return task
