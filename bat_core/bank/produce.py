"""From a task to admitted states and slices, in a worker process: names and values in, values out."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bat_core.bank.admit import refusal, unrestored
from bat_core.bank.cheating import cheat_that_pays, stage_cheat_that_pays
from bat_core.bank.counts import cell_of
from bat_core.bank.slices import slices
from bat_core.bank.states import cut
from bat_core.bank.trajectory import solve
from bat_core.config.schema import TeacherConfig
from bat_core.errors import SynthesisError
from bat_core.hooks.actor import Actor
from bat_core.model.base import Value, digest_of
from bat_core.model.message import Message
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.model.training import Slice
from bat_core.rollout.lab import Lab, LabSpec, lab_for

SAMPLE = 0.02
"""Share of states against which cheats are tried whatever was proven before."""


@dataclass(frozen=True)
class Order:
    """Solve one task.

    Attributes:
        lab: Where.
        task: The task.
        cheats: Whether every known cheat is tried on the whole task.
        teacher: Who solves it; None is the domain's expert.
        sample: Share of its states on which the cheats' acts of that stage are tried.
    """

    lab: LabSpec
    task: Task
    cheats: bool = False
    sample: float = 0.0
    teacher: TeacherConfig | None = None


class Admitted(Value):
    """A state that its own expert can solve, with the slices of that solution."""

    state: StageState
    slices: tuple[Slice, ...]


class Refused(Value):
    """Why a state may not enter, and the cell that lacks it now; no cell if nothing was cut."""

    reason: str
    cell: str = ""


class Produced(Value):
    """What came of a task: what was admitted, why the rest was not, and how often cheats were tried in vain."""

    admitted: tuple[Admitted, ...] = ()
    refused: tuple[Refused, ...] = ()
    paying: str = ""
    tried: int = 0


def produce(order: Order) -> Produced:
    """Solve a task and return what of it may enter the bank."""
    lab = lab_for(order.lab)
    expert, close = _expert(lab, order)
    try:
        return lab.run(_produce(lab, order, expert))
    except SynthesisError as error:
        if order.teacher is not None and error.remedy:
            raise  # an endpoint or a budget that fails is no verdict on the task: what was asked is kept
        return Produced(refused=(Refused(reason=str(error)),))
    finally:
        close()


def _expert(lab: Lab, order: Order) -> tuple[Actor, Callable[[], None]]:
    """Return who solves the task, and what lets go of it afterwards."""
    if order.teacher is None:
        return lab.domain.expert(order.task), lambda: None
    from bat_core.bank.teacher.actor import TeacherActor
    from bat_core.bank.teacher.exchange import Exchange

    exchange = Exchange(order.teacher)
    stages = [stage.id for stage in lab.contract.stages()]
    return TeacherActor(exchange, order.task, stages), exchange.close


PRODUCE = f"{produce.__module__}:{produce.__name__}"


async def _produce(lab: Lab, order: Order, expert: Actor) -> Produced:
    """Cut the clean run; a failure task's own stage is cut from a run with failed attempts before it."""
    task = order.task
    clean = await solve(lab, task, expert)
    cuts = [c for c in cut(lab, clean) if c.state.stratum is not Stratum.FAILURE or c.state.is_e2e]
    if order.teacher is not None:
        cuts = list(cut(lab, clean))  # its own attempts stand in the history
    elif task.stratum is Stratum.FAILURE:
        slips = random.Random(digest_of([task.id, "slips"]))
        tried = await solve(lab, task, lab.domain.expert(task, slips))
        cuts += [c for c in cut(lab, tried, e2e=False) if c.state.stratum is Stratum.FAILURE]
    paying = await cheat_that_pays(lab, cuts[0], clean) if order.cheats else ""
    wrong = await unrestored(lab, (one.state.snapshot for one in cuts))
    admitted, refused = [], []
    for one in cuts:
        chosen = sampled(one.state, order.sample)
        why = paying or wrong.get(one.state.snapshot.root) or await refusal(lab, one, prose=order.cheats or chosen)
        if not why and chosen:
            why = await stage_cheat_that_pays(lab, one)
        if why:
            cell = cell_of(one.state.focus, task.track, one.state.stratum.value)
            said = f"{one.state.focus} of a {task.track} task with {task.faults or 'no fault'}: {why}"
            refused.append(Refused(reason=said, cell=cell))
        else:
            admitted.append(Admitted(state=one.state, slices=tuple(slices(lab, one))))
    tries = int(order.cheats) + sum(sampled(one.state, order.sample) for one in cuts)
    return Produced(admitted=tuple(admitted), refused=tuple(refused), paying=paying, tried=tries)


def sampled(state: StageState, share: float) -> bool:
    """Whether a state is in the seeded sample: this follows from its id, and so from the bank's seed."""
    return int(digest_of(["cheats", state.id])[7:15], 16) < share * 2**32


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
