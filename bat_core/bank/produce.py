"""From a task to admitted states and slices, in a worker process: names and values in, values out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bat_core.bank.admit import refusal
from bat_core.bank.slices import slices
from bat_core.bank.states import cut
from bat_core.bank.trajectory import solve
from bat_core.errors import SynthesisError
from bat_core.model.base import Value, digest_of
from bat_core.model.message import Message
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.model.training import Slice
from bat_core.rollout.lab import Lab, LabSpec, lab_for


@dataclass(frozen=True)
class Order:
    """Solve one task."""

    lab: LabSpec
    task: Task


class Admitted(Value):
    """A state that its own expert can solve, with the slices of that solution."""

    state: StageState
    slices: tuple[Slice, ...]


class Produced(Value):
    """What came of a task: what was admitted, and why the rest was not."""

    admitted: tuple[Admitted, ...] = ()
    refused: tuple[str, ...] = ()


def produce(order: Order) -> Produced:
    """Solve a task and return what of it may enter the bank."""
    lab = lab_for(order.lab)
    try:
        return lab.run(_produce(lab, order.task))
    except SynthesisError as error:
        return Produced(refused=(str(error),))


async def _produce(lab: Lab, task: Task) -> Produced:
    """Cut the clean run; a failure task's own stage is cut from a run with failed attempts before it."""
    clean = await solve(lab, task, lab.domain.expert(task))
    cuts = [c for c in cut(lab, clean) if c.state.stratum is not Stratum.FAILURE or c.state.is_e2e]
    if task.stratum is Stratum.FAILURE:
        slips = random.Random(digest_of([task.id, "slips"]))
        tried = await solve(lab, task, lab.domain.expert(task, slips))
        cuts += [c for c in cut(lab, tried, e2e=False) if c.state.stratum is Stratum.FAILURE]
    admitted, refused = [], []
    for one in cuts:
        why = await refusal(lab, one)
        if why:
            refused.append(f"{one.state.focus} of a {task.track} task with {task.faults or 'no fault'}: {why}")
        else:
            admitted.append(Admitted(state=one.state, slices=tuple(slices(lab, one))))
    return Produced(admitted=tuple(admitted), refused=tuple(refused))


@dataclass(frozen=True)
class LogOrder:
    """Record one log for a base policy, of the domain's novice or of its expert."""

    lab: LabSpec
    task: Task
    novice: bool


def record(order: LogOrder) -> list[tuple[str, Sequence[Message]]]:
    """Return (focus, conversation) pairs of one run: whole, and stage by stage."""
    lab = lab_for(order.lab)
    return lab.run(_record(lab, order))


async def _record(lab: Lab, order: LogOrder) -> list[tuple[str, Sequence[Message]]]:
    rng = random.Random(digest_of([order.task.id, "log"]))
    actor = lab.domain.novice(order.task, rng) if order.novice else lab.domain.expert(order.task)
    run = await solve(lab, order.task, actor)
    return [(c.state.focus, (*lab.harness.prompt(lab.contract, c.state), *c.expert.messages)) for c in cut(lab, run)]
