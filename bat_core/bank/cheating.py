"""Known cheats against a task: none may earn more than an honest run that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bat_core.bank.states import Cut
from bat_core.bank.trajectory import Trajectory, solve
from bat_core.hooks.actor import Act, Actor
from bat_core.model.base import digest_of
from bat_core.model.message import Message
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.rollout.lab import Lab

SLACK = 1e-9


class Earned(NamedTuple):
    """What a run earned."""

    stages: float
    value: float


class Acts(Actor):
    """Acts one after the other; those that stand in the history are done already.

    Args:
        acts: The script.
        before: How often the assistant has spoken before it begins.
    """

    name = "script"

    def __init__(self, acts: Sequence[Act], before: int = 0) -> None:
        self._acts, self._before = acts, before

    def act(self, history: Sequence[Message]) -> Act | None:
        """Return the act after those in `history`."""
        place = _spoken(history) - self._before
        return self._acts[place] if place < len(self._acts) else None


async def cheat_that_pays(lab: Lab, whole: Cut, expert: Trajectory) -> str:
    """Return which cheat on the whole task pays; empty if none does.

    The honest run that fails does the first half of the stages as the expert does, and stops. A cheat's weighted stage
    scores may not exceed that run's, and its reward has to stay below the expert's.
    """
    stages = [stage.id for stage in lab.contract.stages()]
    half = stages[-(-len(stages) // 2) :]
    end = next((i for i, step in enumerate(expert.steps) if step.act.stage in half), len(expert.steps))
    limit = await _earned(lab, whole, expert, end)
    full = await _earned(lab, whole, expert, len(expert.steps))
    for cheat in lab.domain.cheats(whole.state.task):
        got = await _cheated(lab, whole, expert, cheat)
        if got.stages > limit.stages + SLACK or got.value >= full.value > 0:
            honest = f"an honest run that fails earns {limit.stages:.3f}, the expert {full.value:.3f}"
            return f"the cheat {_name(cheat)} earns {got.stages:.3f} in stages, {got.value:.3f} in all; {honest}"
    return ""


async def stage_cheat_that_pays(lab: Lab, cut: Cut) -> str:
    """Return which cheat's acts of the state's own stage earn as much as the expert's; empty if none do."""
    expert = await lab.scorer.score(cut.state, cut.expert, whole=True)
    honest = {digest_of(act.message) for act in _script(lab.domain.expert(cut.state.task))}
    for cheat in lab.domain.cheats(cut.state.task):
        acts = [act for act in _script(cheat) if act.stage == cut.state.focus]
        if all(digest_of(act.message) in honest for act in acts):
            continue  # it does nothing here, or what the expert does
        got = await _from(lab, cut, acts)
        if (got.value or 0) >= (expert.value or 0):
            return f"the cheat {_name(cheat)} earns {got.value} here, as much as the expert"
    return ""


async def _cheated(lab: Lab, whole: Cut, expert: Trajectory, cheat: Actor) -> Earned:
    """Let a cheat run from where it parts with the expert: what both do is done already."""
    acts = _script(cheat)
    same = 0
    while same < min(len(acts), len(expert.steps)) and acts[same].message == expert.steps[same].act.message:
        same += 1
    begin = next((i for i in range(same, -1, -1) if expert.snapshot(i) is not None), 0)
    begun = Trajectory(expert.task, expert.opening, expert.steps[:begin], expert.snapshot(begin))
    run = await solve(lab, expert.task, Acts(acts), begun)
    return await _earned(lab, whole, run, len(run.steps))


def _script(actor: Actor) -> list[Act]:
    """Return all acts of a cheat: they are scripts, which don't look at observations."""
    acts: list[Act] = []
    while (act := actor.act([one.message for one in acts])) is not None and len(acts) < 80:
        acts.append(act)
    return acts


async def _earned(lab: Lab, whole: Cut, run: Trajectory, end: int) -> Earned:
    final = run.snapshot(end)
    said = run.messages(end)[len(run.opening) :]
    rollout = Rollout(state=whole.state.id, messages=said, receipts=run.receipts(end), final=final)
    return _sum(lab, await lab.scorer.score(whole.state, rollout, whole=True))


def _sum(lab: Lab, reward: Reward) -> Earned:
    if reward.breach or not reward.value:
        return Earned(0.0, reward.value or 0.0)
    return Earned(lab.contract.aggregate({one.stage: one.score for one in reward.stages}) or 0.0, reward.value)


async def _from(lab: Lab, cut: Cut, acts: Sequence[Act]) -> Reward:
    state = cut.state
    begun = Trajectory(state.task, state.messages, [], state.snapshot, past=state.receipts)
    run = await solve(lab, state.task, Acts(acts, _spoken(state.messages)), begun)
    end = len(run.steps)
    rollout = Rollout(
        state=state.id, messages=run.messages(end)[len(state.messages) :], receipts=run.receipts(end), final=run.final
    )
    return await lab.scorer.score(state, rollout, whole=True)


def _spoken(history: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in history)


def _name(actor: Actor) -> str:
    return str(getattr(actor, "title", "") or actor.name)
