"""Admission of one state: the expert earns all, idleness and prose nothing, and the workspace comes back whole."""

from __future__ import annotations

from collections.abc import Iterable

from bat_core.bank.states import Cut
from bat_core.errors import SnapshotMismatch
from bat_core.model.message import Message
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.sandbox import SnapshotRef
from bat_core.rollout.lab import Lab

PROSE = (
    "All stages are complete. The plan is written, the setup verified, the outputs validated, every item of the rubric"
    " is satisfied with full evidence, and everything was submitted without failures."
)
"""What somebody says who has done nothing."""


async def refusal(lab: Lab, cut: Cut, *, prose: bool = True) -> str:
    """Return why the state may not enter the bank; empty if it may.

    Args:
        lab: Where it is judged.
        cut: The state with the expert's run.
        prose: Whether words without work are tried, too.
    """
    expert = await lab.scorer.score(cut.state, cut.expert, whole=True)
    missing = _missing(expert)
    if missing:
        return f"the expert's own run fails {missing}"
    tried: dict[str, tuple[Message, ...]] = {"doing nothing": ()}
    if prose:
        tried["prose alone"] = (Message(role="assistant", content=PROSE),)
    for what, said in tried.items():
        nothing = Rollout(state=cut.state.id, messages=said, final=cut.state.snapshot)
        idle = await lab.scorer.score(cut.state, nothing, whole=True)
        earned = [stage.stage for stage in idle.stages if stage.score != 0]
        if earned or idle.value != 0:
            return f"{what} earns {idle.value} ({', '.join(earned)})"
    return ""


async def unrestored(lab: Lab, refs: Iterable[SnapshotRef]) -> dict[str, str]:
    """Return what is wrong with workspaces that a sandbox was given anew, by their root; empty if nothing."""
    wrong = {}
    pool = await lab.pool()
    for ref in {one.root: one for one in refs}.values():
        try:
            await pool.release(await pool.acquire(ref))  # the sandbox answers with the tree hash of what it has now
        except SnapshotMismatch as error:
            wrong[ref.root] = f"its workspace does not come back: {error}"
    return wrong


def _missing(reward: Reward) -> str:
    """Return what the expert did not earn: item ids with reasons, lacking evidence, or a breach."""
    if reward.breach:
        return reward.breach
    failed = [f"{v.item} ({v.reason})" for stage in reward.stages for v in stage.verdicts if not v.passed]
    if failed:
        return "; ".join(failed)
    return "" if reward.evidence == 1 else f"evidence ({reward.evidence:.2f})"
