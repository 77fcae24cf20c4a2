"""The reward of the method: r = eta * (sum of w v / sum of w), caps on the mean, null is not zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bat_core.model.reward import Reward, StageScore
from bat_core.model.rubric import Rubric
from bat_core.model.verdict import ItemVerdict


def evidence_factor(verdicts: Sequence[ItemVerdict]) -> float:
    """Return eta: the mean of eta_i over items that are passed or claimed; 1 if there is none."""
    counted = [verdict.evidence for verdict in verdicts if verdict.passed or verdict.claimed]
    return sum(counted) / len(counted) if counted else 1.0


def item_mean(rubric: Rubric, verdicts: Sequence[ItemVerdict]) -> float | None:
    """Return the weighted mean of verdicts with the contract's caps; None if one is null."""
    passed = {verdict.item: verdict.passed for verdict in verdicts}
    if any(passed[item.id] is None for item in rubric.items):
        return None
    total = sum(item.weight for item in rubric.items)
    mean = sum(item.weight for item in rubric.items if passed[item.id]) / total
    for cap in rubric.caps:
        if passed.get(cap.item) is False:
            mean = min(mean, cap.at_most)
    return mean


def stage_scores(rubrics: Sequence[Rubric], verdicts: Mapping[str, Sequence[ItemVerdict]]) -> tuple[StageScore, ...]:
    """Return one score a rubric; eta is that of the whole rollout.

    Args:
        rubrics: The contracts of the state.
        verdicts: By stage id, one per item.
    """
    eta = evidence_factor([verdict for rubric in rubrics for verdict in verdicts[rubric.stage]])
    scores = []
    for rubric in rubrics:
        mean = item_mean(rubric, verdicts[rubric.stage])
        null = next((v for v in verdicts[rubric.stage] if v.passed is None), None)
        scores.append(
            StageScore(
                stage=rubric.stage,
                score=None if mean is None else eta * mean,
                evidence=eta,
                verdicts=tuple(verdicts[rubric.stage]),
                reason="" if null is None else f"{null.item}: {null.reason}",
            )
        )
    return tuple(scores)


def reward(
    stages: Sequence[StageScore], agentic: float | None, task: float | None, *, e2e: bool, breach: str = ""
) -> Reward:
    """Put a reward together.

    Args:
        stages: Scores of the state's stages.
        agentic: Their aggregate by the contract; used for E2E states.
        task: Task score of an E2E state, None if the track has none.
        e2e: Whether the state runs through all stages.
        breach: What was tampered with, if anything.
    """
    verdicts = [verdict for stage in stages for verdict in stage.verdicts]
    nulls = sum(verdict.passed is None for verdict in verdicts)
    value, reason = _value(stages, agentic, task, e2e=e2e, breach=breach, nulls=nulls)
    return Reward(
        value=value,
        evidence=stages[0].evidence if stages else 1.0,
        items=len(verdicts),
        nulls=nulls,
        stages=tuple(stages),
        task=task,
        breach=breach,
        reason=reason,
    )


def _value(
    stages: Sequence[StageScore], agentic: float | None, task: float | None, *, e2e: bool, breach: str, nulls: int
) -> tuple[float | None, str]:
    """Return the value, and the reason of a null or of a breach."""
    if breach:
        return 0.0, breach
    if nulls:
        return None, f"could not be judged: {next(stage.reason for stage in stages if stage.reason)}"
    if not e2e:
        return stages[0].score, ""
    if agentic is None:
        return None, "no stage could be aggregated"
    return (agentic if task is None else 0.5 * agentic + 0.5 * task), ""


def unscorable(reason: str) -> Reward:
    """Return the reward of a rollout that we lost: null with the reason."""
    return Reward(value=None, reason=reason)
