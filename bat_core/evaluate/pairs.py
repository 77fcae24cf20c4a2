"""Paired differences between two policies, with a bootstrap interval."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bat_core.evaluate.cells import Cell
from bat_core.model.diagnosis import Paired


def pair(candidate: Sequence[Cell], reference: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return the cells of same task and repeat that are valid on both sides."""
    other = {(cell.task_id, cell.repeat): cell for cell in reference}
    pairs = [(cell, other.get((cell.task_id, cell.repeat))) for cell in candidate]
    return [(mine, theirs) for mine, theirs in pairs if theirs is not None and mine.valid and theirs.valid]


def difference(
    values: Sequence[tuple[float | None, float | None]], resamples: int, confidence: float, seed: int
) -> Paired | None:
    """Return the mean difference of pairs without a null, with a percentile bootstrap interval; None if none is left.

    Args:
        values: (candidate, reference) scores.
        resamples: Bootstrap samples.
        confidence: Coverage of the interval, such as 0.9.
        seed: Same values and seed, same interval.
    """
    gains = [mine - theirs for mine, theirs in values if mine is not None and theirs is not None]
    if not gains:
        return None
    rng = random.Random(seed)
    means = sorted(sum(rng.choices(gains, k=len(gains))) / len(gains) for _ in range(resamples))
    tail = (1 - confidence) / 2
    low = means[int(tail * (resamples - 1))]
    high = means[int((1 - tail) * (resamples - 1))]
    return Paired(mean=_round(sum(gains) / len(gains)), low=_round(low), high=_round(high), n=len(gains))


def _round(value: float) -> float:
    return round(min(1.0, max(-1.0, value)), 6)
