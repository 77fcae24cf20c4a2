"""What to ask of the synthesizer: tasks balanced over track, stratum and the stage where a fault shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from bat_core.hooks.contract import StageContract
from bat_core.hooks.synthesizer import SynthesisRequest, TaskSynthesizer
from bat_core.model.base import digest_of
from bat_core.model.task import Stratum, Task

SHARE = {Stratum.SUCCESS: 1, Stratum.RECOVERY: 2, Stratum.FAILURE: 2}
"""A success task fills five success states, a faulty one fills one state of its stratum."""


def requests(contract: StageContract, tasks: int, seed: int, start: int = 0) -> list[SynthesisRequest]:
    """Return `tasks` single-task requests, cycling through all cells; the first `start` of them are left out."""
    cells = _cycle(contract)
    return [
        SynthesisRequest(track=track, stratum=stratum, stage=stage, count=1, seed=_seed(seed, n))
        for n, (track, stratum, stage) in enumerate(islice(cycle(cells), start + tasks))
        if n >= start
    ]


def enough(contract: StageContract) -> int:
    """Return how many tasks reach every cell."""
    return len(_cycle(contract))


def _cycle(contract: StageContract) -> list[tuple[str, Stratum, str | None]]:
    stages = [stage.id for stage in contract.stages()]
    cells: list[tuple[str, Stratum, str | None]] = []
    for stage in stages:
        for stratum, share in SHARE.items():
            for track in contract.tracks():
                where = None if stratum is Stratum.SUCCESS else stage
                if stratum is Stratum.SUCCESS and stages.index(stage) % 2:
                    continue
                cells += [(track, stratum, where)] * share
    return cells


def _seed(seed: int, n: int) -> int:
    return int(digest_of(["bank", seed, n])[7:19], 16)


def make_tasks(synthesizer: TaskSynthesizer, wanted: Sequence[SynthesisRequest]) -> list[Task]:
    """Return one task a request."""
    return [task for request in wanted for task in synthesizer.synthesize(request)]
