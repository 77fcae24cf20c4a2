"""Milliseconds of processor time to score a rollout from its sealed workspace, without judge or re-execution.

    python benchmarks/scoring.py [--tasks 12] [--turns 24]

Each task is solved once by the expert in a real sandbox, further looks fill the run up to the number of turns, and then
the finished rollout is scored: the first time, when references must be computed, and again, as in a group.
"""

import argparse
import statistics
import tempfile
import time

from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.trajectory import rubrics_of, solve
from bat_core.hooks.actor import Act, Actor
from bat_core.model.message import Message, ToolCall
from bat_core.model.rollout import Rollout
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.model.task import Task
from bat_core.rollout.lab import Lab, LabSpec

AGAIN = 7


class Busy(Actor):
    """The expert, with looks before its last words until the run has enough turns."""

    def __init__(self, lab: Lab, task: Task, turns: int) -> None:
        self.title = "busy"
        inner, history, acts = lab.domain.expert(task), [], []
        while (act := inner.act(history)) is not None:
            acts.append(act)
            history.append(act.message)
        look = ToolCall(name="execute_code", arguments={"language": "python", "code": "phx.validate()"})
        filler = Act(acts[-1].stage, Message(role="assistant", tool_calls=(look,)))
        self.acts = [*acts[:-1], *[filler] * max(0, turns - len(acts)), acts[-1]]

    def act(self, history: list[Message]) -> Act | None:
        place = sum(message.role == "assistant" for message in history)
        return self.acts[place] if place < len(self.acts) else None


def rollout(lab: Lab, task: Task, turns: int) -> tuple[StageState, Rollout]:
    run = lab.run(solve(lab, task, Busy(lab, task, turns)))
    end = len(run.steps)
    state = StageState(
        id=task.id, task=task, focus=E2E, stratum=task.stratum, messages=(), rubrics=rubrics_of(lab, task),
        snapshot=lab.store.put_files(lab.contract.workspace(task)),
    )  # fmt: skip
    said = run.messages(end)[len(run.opening) :]
    return state, Rollout(state=task.id, final=run.final, receipts=run.receipts(end), messages=said, turns=end)


def milliseconds(lab: Lab, state: StageState, done: Rollout) -> float:
    async def go() -> float:
        began = time.process_time()
        reward = await lab.scorer.score(state, done)
        spent = 1e3 * (time.process_time() - began)
        assert reward.nulls == 0
        return spent

    return lab.run(go())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--turns", type=int, default=24)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as store, Lab(LabSpec(domain="medimaging", store=store, key="ab" * 32)) as lab:
        tasks = make_tasks(lab.domain.synthesizer(), requests(lab.contract, arguments.tasks, 1))
        runs = [rollout(lab, task, arguments.turns) for task in tasks]
        first = [milliseconds(lab, *run) for run in runs]
        again = [milliseconds(lab, *run) for run in runs for _ in range(AGAIN)]
    turns = statistics.median(done.turns for _, done in runs)
    items = statistics.median(sum(len(rubric.items) for rubric in state.rubrics) for state, _ in runs)
    print(f"{len(runs)} E2E rollouts of {turns:g} turns, {items:g} items")
    for name, values in (("first of a task", first), ("further ones", again)):
        ordered = sorted(values)
        print(f"{name}: median {statistics.median(values):.2f} ms, p90 {ordered[int(0.9 * len(ordered))]:.2f} ms")


if __name__ == "__main__":
    main()
