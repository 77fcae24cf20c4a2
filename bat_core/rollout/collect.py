"""Collecting rollouts: many states, K resets each, in waves that overlap generation with tool time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bat_core.model.reward import Reward
from bat_core.model.state import StageState
from bat_core.rollout.chat import ChatFormat
from bat_core.rollout.engine import Engine, Session, attached
from bat_core.rollout.episode import Episode, play
from bat_core.rollout.lab import LabSpec, lab_for

WAVES = 2
"""Waves in flight: while one generates, the other's tools run."""


@dataclass(frozen=True)
class Job:
    """One rollout to make: the state, its index k, and the seed of its tokens."""

    state: StageState
    index: int
    seed: int


@dataclass(frozen=True)
class Batch:
    """Rollouts to collect, in names and values: the engine is one that this process knows by name."""

    lab: LabSpec
    engine: str
    jobs: Sequence[Job]


@dataclass(frozen=True)
class Scored:
    """A rollout with its reward."""

    episode: Episode
    reward: Reward


def collect(batch: Batch, done: Callable[[int, int], None] | None = None) -> list[Scored]:
    """Return the scored rollouts of `batch.jobs`, in order."""
    lab = lab_for(batch.lab)
    engine = attached(batch.engine)
    chat = ChatFormat(engine.tokenizer, lab.harness.tools(), engine.context)
    return lab.run(_waves(batch, engine, chat, done))


async def _waves(
    batch: Batch, engine: Engine, chat: ChatFormat, done: Callable[[int, int], None] | None
) -> list[Scored]:
    size = max(1, batch.lab.rollout.live // WAVES)
    waves = [batch.jobs[i : i + size] for i in range(0, len(batch.jobs), size)]
    gate = asyncio.Semaphore(WAVES)
    finished = 0

    async def wave(jobs: Sequence[Job]) -> list[Scored]:
        nonlocal finished
        async with gate:
            session = engine.open([job.seed for job in jobs])
            scored = await asyncio.gather(*(_one(batch, chat, session, slot, job) for slot, job in enumerate(jobs)))
        finished += len(jobs)
        if done is not None:
            done(finished, len(batch.jobs))
        return list(scored)

    results = await asyncio.gather(*(wave(jobs) for jobs in waves))
    return [one for part in results for one in part]


async def _one(batch: Batch, chat: ChatFormat, session: Session, slot: int, job: Job) -> Scored:
    lab = lab_for(batch.lab)
    episode = await play(lab, chat, session, slot, job.state, job.index)
    return Scored(episode, await lab.scorer.score(job.state, episode.rollout))
