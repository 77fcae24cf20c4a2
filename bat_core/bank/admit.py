"""Admission: the expert's run satisfies its own rubric, doing nothing earns nothing."""

from __future__ import annotations

from bat_core.bank.states import Cut
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.rollout.lab import Lab


async def refusal(lab: Lab, cut: Cut) -> str:
    """Return why the state may not enter the bank; empty if it may."""
    expert = await lab.scorer.score(cut.state, cut.expert, whole=True)
    missing = _missing(expert)
    if missing:
        return f"the expert's own run fails {missing}"
    nothing = Rollout(state=cut.state.id, final=cut.state.snapshot)
    idle = await lab.scorer.score(cut.state, nothing, whole=True)
    earned = [stage.stage for stage in idle.stages if stage.score != 0]
    if earned or idle.value != 0:
        return f"doing nothing earns {idle.value} ({', '.join(earned)})"
    return ""


def _missing(reward: Reward) -> str:
    """Return what the expert did not earn: item ids with reasons, lacking evidence, or a breach."""
    if reward.breach:
        return reward.breach
    failed = [f"{v.item} ({v.reason})" for stage in reward.stages for v in stage.verdicts if not v.passed]
    if failed:
        return "; ".join(failed)
    return "" if reward.evidence == 1 else f"evidence ({reward.evidence:.2f})"
