"""Many rollouts in a row with accidents of every kind: nothing piles up. `BAT_SOAK` sets how many on bubblewrap."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import SandboxUnavailable
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import SandboxSpec, SnapshotRef
from bat_core.sandboxes.docker.container import Container
from bat_core.sandboxes.pool import SandboxPool
from bat_core.sandboxes.provider import AgentProvider

Accident = Callable[[AgentProvider, Sandbox], Any]
ROLLOUTS = int(os.environ.get("BAT_SOAK", "200"))


async def honest(provider: AgentProvider, box: Sandbox) -> None:
    await box.write("in.txt", b"x" * 2000)
    assert (await box.python("open('out.txt', 'w').write('ok' * 500)")).rc == 0
    assert (await box.snapshot()).files == 4


async def late(provider: AgentProvider, box: Sandbox) -> None:
    result = await box.exec(["sh", "-c", "setsid sleep 50 & trap '' TERM; sleep 50"], timeout=0.03)
    assert result.status == "timeout"


async def killed(provider: AgentProvider, box: Any) -> None:
    call = asyncio.create_task(box.exec(["sleep", "30"]))
    await asyncio.sleep(0.005)
    line = box._lifeline
    if isinstance(line, Container):
        await asyncio.to_thread(provider.engine.api().kill, line.name)  # type: ignore[attr-defined]
    else:
        os.kill(line._process.pid, signal.SIGKILL)
    with pytest.raises(SandboxUnavailable):
        await call


async def cancelled(provider: AgentProvider, box: Sandbox) -> None:
    call = asyncio.create_task(box.exec(["sh", "-c", "setsid sleep 50 & sleep 50"]))
    await asyncio.sleep(0.005)
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call


async def flooding(provider: AgentProvider, box: Sandbox) -> None:
    result = await box.exec(["head", "-c", "3000000", "/dev/zero"])
    assert result.stdout_total == 3_000_000


async def forgotten(provider: AgentProvider, box: Sandbox) -> None:
    await box.exec(["sh", "-c", "mkdir -p deep/er; chmod 0 deep; mkfifo pipe; ln -s / root; sleep 50 &"])


async def impatient(pool: SandboxPool, ref: SnapshotRef, after: float) -> None:
    """Give up waiting for a sandbox."""
    waiting = asyncio.create_task(pool.acquire(ref))
    await asyncio.sleep(after)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await pool.release(await waiting)


async def soak(provider: AgentProvider, spec: SandboxSpec, count: int, accidents: list[Accident], seed: int) -> int:
    """Run `count` rollouts, four at once, then close all; return the host memory in between, after the first half."""
    luck = random.Random(seed)
    plan = [(luck.choice(accidents), luck.random()) for _ in range(count)]
    ref = provider.store.put_files({"a": b"1" * 500, "b/c": b"2" * 500})
    half = 0
    async with SandboxPool(provider, spec, 4) as pool:

        async def one(accident: Accident, chance: float) -> None:
            if chance < 0.05:
                await impatient(pool, ref, chance)
            box = await pool.acquire(ref)
            try:
                assert await box.read("a") == b"1" * 500
                await accident(provider, box)
            finally:
                await pool.release(box)

        for number, batch in enumerate([plan[at : at + 4] for at in range(0, count, 4)]):
            await asyncio.gather(*[one(*step) for step in batch])
            if number * 8 <= count:
                half = memory()
        grown = memory() / half - 1
    await provider.aclose()
    assert grown < 0.05, f"host memory grew by {grown:.1%}"
    return half


def memory() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


ACCIDENTS: list[Accident] = [honest, honest, late, killed, cancelled, flooding, forgotten]


@pytest.mark.slow
def test_two_hundred_rollouts_leave_nothing(strong: AgentProvider, spec: Any, census: Any) -> None:
    """On docker fewer: kills and cancellations cost a start each."""
    count = ROLLOUTS if strong.name == "bubblewrap" else 100
    asyncio.run(soak(strong, spec(strong.name), 16, ACCIDENTS, 1))
    before = census(strong)
    asyncio.run(soak(strong, spec(strong.name), count, ACCIDENTS, 2))
    assert census(strong) == before
