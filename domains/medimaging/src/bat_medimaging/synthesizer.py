"""The offline synthesizer: tasks from a seed, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bat_core.errors import SynthesisError
from bat_core.hooks.synthesizer import SynthesisRequest, TaskSynthesizer
from bat_core.model.task import Stratum, Task
from bat_medimaging.faults import CHOICES

VERSION = "1"
SEED_SPACE = {"bank": 0, "heldout": 1, "blind": 2}
"""Seeds of bank and suites can't meet."""
TRACKS = ("segmentation", "classification")


class OfflineSynthesizer(TaskSynthesizer):
    """Makes tasks by drawing; the same request yields the same tasks."""

    def synthesize(self, request: SynthesisRequest) -> Iterator[Task]:
        """Yield exactly `request.count` tasks."""
        check(request)
        rng = Random(f"bank:{VERSION}:{request.track}:{request.stratum}:{request.stage}:{request.seed}")
        for _ in range(request.count):
            yield make_task(rng, request.track, request.stratum, request.stage, "bank")


def check(request: SynthesisRequest) -> None:
    """Refuse what can't be made."""
    if request.track not in TRACKS:
        raise SynthesisError(f"medimaging has no track {request.track!r}", remedy=f"use one of {', '.join(TRACKS)}")
    stages = CHOICES[request.track, Stratum.RECOVERY]
    if request.stratum is not Stratum.SUCCESS and request.stage not in (None, *stages):
        raise SynthesisError(
            f"medimaging plants no fault in stage {request.stage!r}", remedy=f"use one of {', '.join(stages)} or none"
        )


def make_task(rng: Random, track: str, stratum: Stratum, stage: str | None, kind: str) -> Task:
    """Return one task; public and private seed are drawn apart, so that neither gives away the other."""
    faults: tuple[str, ...] = ()
    if stratum is not Stratum.SUCCESS:
        choices = CHOICES[track, stratum]
        faults = rng.choice(choices[stage or rng.choice(sorted(choices))])
    return Task(
        id=f"phx-{track[:3]}-{rng.getrandbits(40):010x}",
        domain="medimaging",
        track=track,
        seed=SEED_SPACE[kind] << 48 | rng.getrandbits(48),
        version=VERSION,
        stratum=stratum,
        faults=faults,
        public={"kind": kind},
        private={"seed": rng.getrandbits(62)},
    )
