"""Choosing s*_r, the stage to practise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bat_core.errors import EvaluatorError
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History
from bat_core.model.stage import Stage


class Target(NamedTuple):
    """A stage and why it was chosen."""

    stage: str
    reason: str


def choose_target(history: History, stages: Sequence[Stage], *, restart: bool = False) -> Target:
    """Return the stage that regressed most after a round that was not promoted, else the weakest one.

    Ties go to the earliest stage. A stage without a score is not chosen.

    Args:
        history: What was decided so far.
        stages: In order of the workflow.
        restart: Whether a round after a held one starts from theta* instead of the candidate.
    """
    if history.rounds and history.rounds[-1].decision.outcome != "promoted":
        regressed = _most_regressed(history.rounds[-1].diagnosis, stages)
        if regressed is not None:
            return regressed
    return _weakest(_current(history, restart), stages)


def _current(history: History, restart: bool) -> Diagnosis:
    """Return the diagnosis of the policy that the next round starts from."""
    if history.rounds and history.rounds[-1].decision.outcome == "held" and not restart:
        return history.rounds[-1].diagnosis
    return history.best


def _most_regressed(diagnosis: Diagnosis, stages: Sequence[Stage]) -> Target | None:
    losses = {s.id: -diagnosis.stage_gains[s.id].mean for s in stages if s.id in diagnosis.stage_gains}
    worst = max(losses, key=lambda stage: losses[stage], default=None)
    if worst is None or losses[worst] <= 0:
        return None
    return Target(worst, f"{worst} regressed most, by {100 * losses[worst]:.1f} points")


def _weakest(diagnosis: Diagnosis, stages: Sequence[Stage]) -> Target:
    scores = {s.id: score for s in stages if (score := diagnosis.stages.get(s.id)) is not None}
    if not scores:
        raise EvaluatorError("no stage could be judged, so no target can be chosen", remedy="see the evaluator's log")
    weakest = min(scores, key=lambda stage: scores[stage])
    return Target(weakest, f"{weakest} is weakest, at {100 * scores[weakest]:.1f}")
