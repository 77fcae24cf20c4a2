from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.curriculum.batches import batches
from bat_core.errors import SynthesisError
from bat_core.model.mixture import Mixture
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task

RUBRIC = Rubric(stage="A", items=(RubricItem(id="A.a", criterion="?", verifier="check:x"),))


def state(focus: str, track: str, stratum: Stratum, number: int) -> StageState:
    return StageState(
        id=f"{focus}-{track}-{stratum.value}-{number}",
        task=Task(id=f"{track}-{number}", domain="d", track=track, seed=number),
        focus=focus,
        stratum=stratum,
        snapshot=SnapshotRef(root="sha256:" + "0" * 64),
        messages=(),
        rubrics=(RUBRIC,),
    )


def bank(each: int = 2) -> list[StageState]:
    return [
        state(*cell, number) for cell in product(("A", "B", "C", "E2E"), ("x", "y"), Stratum) for number in range(each)
    ]


def mixture(target: int = 4, mix: int = 2, e2e: int = 2) -> Mixture:
    return Mixture(round=1, target="B", groups={"target": target, "mix": mix, "e2e": e2e}, mix=("A", "C"), reason="r")


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(1, 9), st.integers(0, 99))
def test_the_shares_are_exact_in_every_batch(target: int, mix: int, e2e: int, steps: int, seed: int) -> None:
    found = batches(mixture(target, mix, e2e), bank(), steps, seed)
    assert len(found) == steps
    for batch in found:
        counts = Counter(state.focus for state in batch)
        assert (counts["B"], counts["A"] + counts["C"], counts["E2E"]) == (target, mix, e2e)


@given(st.integers(0, 99))
def test_strata_tracks_and_stages_take_turns(seed: int) -> None:
    flat = [state for batch in batches(mixture(), bank(), 30, seed) for state in batch]
    for focuses in ({"B"}, {"A", "C"}, {"E2E"}):
        cells = [(s.focus, s.task.track, s.stratum) for s in flat if s.focus in focuses]
        counts = Counter(cells)
        assert len(counts) == 6 * len(focuses)
        assert max(counts.values()) - min(counts.values()) <= 1
        size = len(counts)
        assert all(len(set(cells[i : i + size])) == size for i in range(0, len(cells) - size, size))


@given(st.integers(0, 99))
def test_no_state_comes_again_before_its_whole_cell_has_had_its_turn(seed: int) -> None:
    flat = [s.id for batch in batches(mixture(4, 0, 0), bank(3), 20, seed) for s in batch]
    counts = Counter(flat)
    assert max(counts.values()) - min(counts.values()) <= 1 and len(counts) == 18


def test_the_same_seed_draws_the_same_and_another_seed_another_order() -> None:
    def ids(seed: int) -> list[str]:
        return [state.id for batch in batches(mixture(), bank(), 5, seed) for state in batch]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)


def test_a_pool_that_the_bank_can_not_fill_is_an_error_and_an_unused_one_is_not() -> None:
    without = [state for state in bank() if state.focus != "E2E"]
    with pytest.raises(SynthesisError, match=r"the bank has no state for E2E; raise bank\.tasks"):
        batches(mixture(), without, 1, 0)
    assert len(batches(mixture(4, 2, 0), without, 1, 0)[0]) == 6


def test_pools_refill_when_the_target_moves() -> None:
    """A target that comes back later finds all of its states again: nothing drains."""
    states = bank()
    for target, mix in (("A", ("B", "C")), ("B", ("A", "C")), ("A", ("B", "C"))):
        one = Mixture(round=1, target=target, groups={"target": 12}, mix=mix, reason="r")
        assert len({state.id for state in batches(one, states, 1, 0)[0]}) == 12
