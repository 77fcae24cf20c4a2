"""Admission of one state: the expert earns all, idleness and prose nothing, and the workspace comes back whole."""

from __future__ import annotations

from bat_core.bank.states import Cut
from bat_core.model.message import Message
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.rollout.lab import Lab

PROSE = (
    "All stages are complete. The plan is written, the setup verified, the outputs validated, every item of the rubric"
    " is satisfied with full evidence, and everything was submitted without failures."
)
"""What somebody says who has done nothing."""


async def refusal(lab: Lab, cut: Cut) -> str:
    """Return why the state may not enter the bank; empty if it may."""
    expert = await lab.scorer.score(cut.state, cut.expert, whole=True)
    missing = _missing(expert)
    if missing:
        return f"the expert's own run fails {missing}"
    for what, said in (("doing nothing", ()), ("prose alone", (Message(role="assistant", content=PROSE),))):
        nothing = Rollout(state=cut.state.id, messages=said, final=cut.state.snapshot)
        idle = await lab.scorer.score(cut.state, nothing, whole=True)
        earned = [stage.stage for stage in idle.stages if stage.score != 0]
        if earned or idle.value != 0:
            return f"{what} earns {idle.value} ({', '.join(earned)})"
    return await _restored(lab, cut)


async def _restored(lab: Lab, cut: Cut) -> str:
    """Return what is wrong with a fresh sandbox that was given the state's workspace."""
    pool = await lab.pool()
    sandbox = await pool.acquire(cut.state.snapshot)
    try:
        again = await sandbox.snapshot()
    finally:
        await pool.release(sandbox)
    if again.root == cut.state.snapshot.root:
        return ""
    return f"the restored workspace is {again.root[:19]}, not {cut.state.snapshot.root[:19]}"


def _missing(reward: Reward) -> str:
    """Return what the expert did not earn: item ids with reasons, lacking evidence, or a breach."""
    if reward.breach:
        return reward.breach
    failed = [f"{v.item} ({v.reason})" for stage in reward.stages for v in stage.verdicts if not v.passed]
    if failed:
        return "; ".join(failed)
    return "" if reward.evidence == 1 else f"evidence ({reward.evidence:.2f})"
