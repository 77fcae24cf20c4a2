"""The held-out and the blind suite: tasks that no policy may ever be trained on."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from bat_core.model.leakage import HeldoutItem
from bat_core.model.task import Stratum, Task
from bat_medimaging.recipe import recipe_of
from bat_medimaging.synthesizer import TRACKS, VERSION, make_task
from bat_medimaging.texts import origins

DEFAULT_COUNT = 12
STRATA = (Stratum.SUCCESS, Stratum.RECOVERY, Stratum.FAILURE)
STAGES = ("S1", "S2", "S3", "S4", "S5")


def heldout_tasks(count: int) -> list[Task]:
    """Return held-out tasks: like the bank's, from a seed space that the bank never draws from."""
    return _suite("heldout", count)


def blind_tasks(count: int) -> list[Task]:
    """Return blind tasks: another geometry, another wording, and a fault that stands nowhere else."""
    return _suite("blind", count)


def heldout_items(tasks: Sequence[Task]) -> list[HeldoutItem]:
    """Return what of `tasks` must never be trained on."""
    out: list[HeldoutItem] = []
    for task in tasks:
        found = [("identifier", task.id), *(("text", text) for text in origins(recipe_of(task)))]
        found.append(("answer", str(task.private["seed"])))
        out += [
            HeldoutItem(item_id=f"{task.id}-{place}", task=task.id, kind=kind, text=text)  # type: ignore[arg-type]
            for place, (kind, text) in enumerate(found)
        ]
    return out


def _suite(name: str, count: int) -> list[Task]:
    """Return `count` tasks, balanced over tracks, then strata, then fault stages."""
    rng = Random(f"{name}:{VERSION}")
    return [_task(name, rng, place) for place in range(count)]


def _task(name: str, rng: Random, place: int) -> Task:
    track, stratum = TRACKS[place % 2], STRATA[place // 2 % 3]
    # Blind recoveries of S5 use F1, which neither the bank nor the held-out suite plants.
    task = make_task(rng, track, stratum, STAGES[place // 6 % 5], name)
    if name == "blind" and stratum is Stratum.RECOVERY and place // 6 % 2 == 0:
        task = task.model_copy(update={"faults": ("F1",)})
    return task
