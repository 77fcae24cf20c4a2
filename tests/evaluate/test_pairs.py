from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bat_core.evaluate.cells import Cell
from bat_core.evaluate.pairs import difference, pair

SCORE = st.none() | st.floats(0, 1)


def cell(task: str, repeat: int = 0, overall: float | None = 0.5, *, valid: bool = True) -> Cell:
    return Cell(task_id=task, track="t", repeat=repeat, valid=valid, stages={}, overall=overall)


def plain_bootstrap(gains: list[float], resamples: int, confidence: float, seed: int) -> tuple[float, float]:
    """The percentile bootstrap, drawn one index at a time like `random.choices` does."""
    rng = random.Random(seed)
    means = []
    for _ in range(resamples):
        drawn = [gains[math.floor(rng.random() * len(gains))] for _ in gains]
        means.append(sum(drawn) / len(drawn))
    means.sort()
    tail = (1 - confidence) / 2
    return means[math.floor(tail * (resamples - 1))], means[math.floor((1 - tail) * (resamples - 1))]


@settings(max_examples=50)
@given(st.lists(st.tuples(SCORE, SCORE), max_size=12), st.sampled_from([0.8, 0.9, 0.95]), st.integers(0, 9))
def test_the_interval_is_that_of_the_plain_bootstrap(
    values: list[tuple[float | None, float | None]], confidence: float, seed: int
) -> None:
    gains = [mine - theirs for mine, theirs in values if mine is not None and theirs is not None]
    found = difference(values, 200, confidence, seed)
    if not gains:
        assert found is None
        return
    low, high = plain_bootstrap(gains, 200, confidence, seed)
    assert found is not None and found.n == len(gains)
    assert found.mean == pytest.approx(statistics.fmean(gains), abs=1e-6)
    assert found.low == pytest.approx(low, abs=1e-6) and found.high == pytest.approx(high, abs=1e-6)
    assert found.low <= found.high


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(7)
    hits = 0
    for trial in range(150):
        values: list[tuple[float | None, float | None]] = [
            (min(1.0, max(0.0, rng.gauss(0.5, 0.1))), 0.4) for _ in range(40)
        ]
        found = difference(values, 200, 0.9, trial)
        assert found is not None
        hits += found.low <= 0.1 <= found.high
    assert 0.80 <= hits / 150 <= 0.97


def test_the_same_values_and_seed_give_the_same_interval() -> None:
    values: list[tuple[float | None, float | None]] = [(n / 10, 0.5) for n in range(10)]
    assert difference(values, 500, 0.9, 0) == difference(values, 500, 0.9, 0)


def test_pairs_are_of_the_same_task_and_repeat_and_valid_on_both_sides() -> None:
    mine = [cell("a"), cell("a", 1), cell("b"), cell("c", valid=False), cell("e")]
    theirs = [cell("c"), cell("b", valid=False), cell("a", 1, 0.1), cell("a", 0, 0.2), cell("d")]
    found = [(m.task_id, m.repeat, t.overall) for m, t in pair(mine, theirs)]
    assert found == [("a", 0, 0.2), ("a", 1, 0.1)]
