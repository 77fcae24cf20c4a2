"""A scripted actor's run through a task in a real sandbox, snapshotted where states can begin."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bat_core.bank.balance import stratum_in
from bat_core.errors import SynthesisError
from bat_core.hooks.actor import Act, Actor
from bat_core.hooks.contract import StageContract
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.message import Message
from bat_core.model.receipt import Receipt
from bat_core.model.rubric import Rubric
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.task import Stratum, Task
from bat_core.rollout.lab import Lab
from bat_core.rollout.receipts import Ledger

MAX_ACTS = 80


@dataclass(frozen=True)
class Step:
    """One act, what the sandbox answered, and the workspace before it where a state may begin."""

    act: Act
    observation: Message | None
    receipts: tuple[Receipt, ...]
    before: SnapshotRef | None


@dataclass
class Trajectory:
    """A finished run: opening messages, steps, and the sealed workspace at the end; `past` are receipts before it."""

    task: Task
    opening: tuple[Message, ...]
    steps: list[Step] = field(default_factory=list)
    final: SnapshotRef | None = None
    provider: str = ""
    past: tuple[Receipt, ...] = ()

    def messages(self, until: int) -> tuple[Message, ...]:
        """Return opening and history before step `until`."""
        said = list(self.opening)
        for step in self.steps[:until]:
            said.append(step.act.message)
            if step.observation is not None:
                said.append(step.observation)
        return tuple(said)

    def receipts(self, until: int) -> tuple[Receipt, ...]:
        """Return the receipts before step `until`."""
        return tuple(receipt for step in self.steps[:until] for receipt in step.receipts)

    def snapshot(self, at: int) -> SnapshotRef | None:
        """Return the workspace before step `at`, or the final one behind the last step."""
        return self.steps[at].before if at < len(self.steps) else self.final


def fault_stage(lab: Lab, task: Task) -> str | None:
    """Return the stage in which the task's first fault shows, None if it has none."""
    stages = {fault.id: fault.stage for fault in lab.domain.faults()}
    return stages.get(task.faults[0]) if task.faults else None


def stratum_at(lab: Lab, task: Task, stage: str) -> Stratum:
    """Return the stratum of `stage` in a task: that of the task where its faults show, else success."""
    return stratum_in(lab.domain.faults(), task, stage)


def rubrics_of(lab: Lab, task: Task) -> tuple[Rubric, ...]:
    """Return the contracts of all stages of a task."""
    contract = lab.contract
    return tuple(contract.rubric(task, s.id, stratum_at(lab, task, s.id)) for s in contract.stages())


def opening(contract: StageContract, task: Task, rubrics: tuple[Rubric, ...]) -> tuple[Message, ...]:
    """Return the messages that open every conversation about a task."""
    return (
        Message(role="system", content=contract.introduction(task)),
        Message(role="user", content=contract.opening(task, rubrics)),
    )


async def solve(lab: Lab, task: Task, actor: Actor, begun: Trajectory | None = None) -> Trajectory:
    """Let `actor` work through `task` in a fresh sandbox.

    Args:
        lab: Where.
        task: The task.
        actor: Who.
        begun: A run whose steps are taken as done; its last workspace is where the actor begins.

    Raises:
        SynthesisError: If the actor does not come to an end.
    """
    if begun is None:
        start = lab.store.put_files(lab.contract.workspace(task))
        trajectory = Trajectory(task, opening(lab.contract, task, rubrics_of(lab, task)))
    else:
        assert begun.final is not None, "a run goes on from a sealed workspace"
        start, trajectory = begun.final, Trajectory(task, begun.opening, list(begun.steps), past=begun.past)
    pool = await lab.pool()
    sandbox = await pool.acquire(start)
    try:
        trajectory.provider = sandbox.provider
        await _drive(lab, sandbox, actor, trajectory)
        trajectory.final = await sandbox.snapshot()
    finally:
        await pool.release(sandbox)
    return trajectory


async def _drive(lab: Lab, sandbox: Sandbox, actor: Actor, trajectory: Trajectory) -> None:
    held = (*trajectory.past, *trajectory.receipts(len(trajectory.steps)))
    ledger = Ledger(lab.key, sandbox.provider, held)
    history = list(trajectory.messages(len(trajectory.steps)))
    stage = ""
    boundary = True
    while (act := actor.act(history)) is not None:
        if len(trajectory.steps) == MAX_ACTS:
            raise SynthesisError(f"{actor.name} did not finish task {trajectory.task.id} in {MAX_ACTS} acts")
        boundary = boundary or act.stage != stage
        before = await sandbox.snapshot() if boundary else None
        stage = act.stage
        step = await _step(lab, sandbox, ledger, act, before)
        if not actor.foresees and _shows(lab, trajectory, step):
            step = replace(step, act=replace(act, kind="symptom"))
        boundary = step.act.kind == "symptom"
        trajectory.steps.append(step)
        history.append(act.message)
        if step.observation is not None:
            history.append(step.observation)


def _shows(lab: Lab, trajectory: Trajectory, step: Step) -> bool:
    """Whether a step is the first of its stage that shows a planted fault."""
    if step.observation is None or any(
        s.act.kind == "symptom" and s.act.stage == step.act.stage for s in trajectory.steps
    ):
        return False
    planted = [f for f in lab.domain.faults() if f.id in trajectory.task.faults and f.stage == step.act.stage]
    return any(fault.symptom in step.observation.content for fault in planted)


async def _step(lab: Lab, sandbox: Sandbox, ledger: Ledger, act: Act, before: SnapshotRef | None) -> Step:
    if not act.message.tool_calls:
        return Step(act, None, (), before)
    call = act.message.tool_calls[0]
    result = await lab.harness.call(sandbox, call, lab.spec.rollout.exec_s)
    if isinstance(result, str):
        raise SynthesisError(f"the expert made a malformed call: {result}")
    receipt = ledger.add(call, result)
    observation = Message(role="tool", name=call.name, content=lab.harness.observation(result))
    return Step(act, observation, (receipt,), before)
