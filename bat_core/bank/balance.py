"""Balance: which cells a domain has, which of them a bank fills, and why the others are empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bat_core.bank.counts import cell_of
from bat_core.bank.plan import enough
from bat_core.hooks.domain import Domain
from bat_core.hooks.fault import Fault
from bat_core.model.stage import E2E
from bat_core.model.task import Stratum, Task

NONE, START, MIDDLE, LATE, UNRECOVERABLE = "none", "start", "middle", "late", "unrecoverable"


def cells(domain: Domain) -> list[str]:
    """Return all cells: focus x track x stratum."""
    contract = domain.contract()
    focuses = [E2E, *(stage.id for stage in contract.stages())]
    return [cell_of(focus, track, s.value) for focus in focuses for track in contract.tracks() for s in Stratum]


def stratum_in(catalogue: Iterable[Fault], task: Task, stage: str) -> Stratum:
    """Return the stratum of `stage` in a task: that of the task where its faults show, else success."""
    stages = {fault.id: fault.stage for fault in catalogue}
    return task.stratum if stage in {stages.get(fault) for fault in task.faults} else Stratum.SUCCESS


def cells_of(domain: Domain, task: Task) -> list[str]:
    """Return the cells that a task fills if all of its states are admitted."""
    stages = [stage.id for stage in domain.contract().stages()]
    inside = [cell_of(stage, task.track, stratum_in(domain.faults(), task, stage).value) for stage in stages]
    return [cell_of(E2E, task.track, task.stratum.value), *inside]


def where(domain: Domain, task: Task) -> str:
    """Return where the fault of an E2E state lies: the first stage, a middle one, the last one, or beyond repair."""
    if not task.faults:
        return NONE
    catalogue = {fault.id: fault for fault in domain.faults()}
    known = [catalogue[fault] for fault in task.faults if fault in catalogue]
    if any(not fault.recoverable for fault in known):
        return UNRECOVERABLE
    stages = [stage.id for stage in domain.contract().stages()]
    first = min((stages.index(fault.stage) for fault in known), default=0)
    return START if first == 0 else LATE if first == len(stages) - 1 else MIDDLE


def missing(
    domain: Domain, filled: Mapping[str, int], asked: Sequence[Task], reasons: Mapping[str, str]
) -> dict[str, str]:
    """Return why each empty cell is empty.

    Args:
        domain: Whose cells.
        filled: States by cell.
        asked: All tasks that were asked for.
        reasons: Why samples of a cell were rejected, the first of each.
    """
    wanted = {cell for task in asked for cell in cells_of(domain, task)}
    found = {}
    for cell in cells(domain):
        if filled.get(cell):
            continue
        if cell in wanted:
            found[cell] = f"asked for, but nothing was admitted: {reasons.get(cell, 'the expert left no state of it')}"
        else:
            found[cell] = _not_asked(domain, cell, len(asked))
    return found


def asked_for(why: str) -> bool:
    """Whether a cell is empty although tasks were to fill it."""
    return why.startswith("asked for")


def _not_asked(domain: Domain, cell: str, tasks: int) -> str:
    focus, track, stratum = cell.split("/")
    here = [f for f in domain.faults() if not f.tracks or track in f.tracks]
    if stratum != Stratum.SUCCESS.value and focus != E2E and not any(fault.stage == focus for fault in here):
        return "the domain plants no fault there"
    return f"none of {tasks} tasks was of it; the plan reaches all cells with {enough(domain.contract())} tasks"
