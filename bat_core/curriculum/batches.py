"""From a mixture to the states of each batch: exact shares, strata and tracks in turn, seeded."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from bat_core.errors import SynthesisError
from bat_core.model.mixture import Mixture
from bat_core.model.stage import E2E
from bat_core.model.state import StageState


def batches(mixture: Mixture, states: Sequence[StageState], steps: int, seed: int) -> list[list[StageState]]:
    """Return `steps` batches, each with exactly `mixture.groups` states of each pool.

    Raises:
        SynthesisError: If the bank has no state for a pool that the mixture asks for.
    """
    rng = random.Random(seed)
    pools = {
        "target": _draw([mixture.target], states, rng),
        "mix": _draw(mixture.mix, states, rng),
        "e2e": _draw([E2E], states, rng),
    }
    return [
        [next(pool) for name, pool in pools.items() for _ in range(mixture.groups.get(name, 0))] for _ in range(steps)
    ]


def _draw(focuses: Sequence[str], states: Sequence[StageState], rng: random.Random) -> Iterator[StageState]:
    """Yield states for ever: focus, track and stratum in turn, within a cell a shuffled order without repetition."""
    cells: dict[tuple[str, str, str], list[StageState]] = {}
    for state in states:
        if state.focus in focuses:
            cells.setdefault((state.focus, state.task.track, state.stratum.value), []).append(state)
    if not cells:
        raise SynthesisError(f"the bank has no state for {', '.join(focuses)}", remedy="raise bank.tasks")
    order = sorted(cells)
    rng.shuffle(order)
    waiting: dict[tuple[str, str, str], list[StageState]] = {cell: [] for cell in order}
    while True:
        for cell in order:
            if not waiting[cell]:
                waiting[cell] = rng.sample(cells[cell], len(cells[cell]))
            yield waiting[cell].pop()
