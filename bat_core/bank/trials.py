"""Trials: which tasks the known cheats are tried on, and what follows for their families."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bat_core.bank.counts import cell_of
from bat_core.bank.produce import SAMPLE, Order, Produced, Refused
from bat_core.bank.proofs import Family, Proofs, families
from bat_core.config.schema import TeacherConfig
from bat_core.model.task import Task
from bat_core.rollout.lab import LabSpec


class Trials:
    """Which tasks the known cheats are tried on, and what follows.

    Args:
        folder: Of proofs; None tries nothing.
        version: Of everything that a proof depends on.
        tasks: All of them.
    """

    def __init__(self, folder: Path | None, version: str, tasks: Sequence[Task]) -> None:
        self._proofs = None if folder is None else Proofs(folder, version)
        self._carriers = self._proofs.carriers(tasks) if self._proofs else set()
        self._paying: dict[Family, str] = {}

    def order(self, lab: LabSpec, task: Task, teacher: TeacherConfig | None = None) -> Order:
        """Return what is to be done with a task."""
        return Order(lab, task, task.id in self._carriers, 0.0 if self._proofs is None else SAMPLE, teacher)

    def judged(self, order: Order, produced: Produced) -> Produced:
        """Return what came of a task; nothing of it is admitted if a cheat pays in its family."""
        mine = families(order.task)
        if produced.paying:
            self._paying.update(dict.fromkeys(mine, produced.paying))
        elif order.cheats and self._proofs is not None and produced.admitted:
            self._proofs.add(mine)
        why = next((self._paying[family] for family in sorted(mine) if family in self._paying), "")
        if not why or produced.paying:
            return produced
        cells = [cell_of(one.state.focus, one.state.task.track, one.state.stratum.value) for one in produced.admitted]
        refused = tuple(Refused(reason=f"of a family in which a cheat pays: {why}", cell=cell) for cell in cells)
        return produced.model_copy(update={"admitted": (), "refused": (*produced.refused, *refused)})
