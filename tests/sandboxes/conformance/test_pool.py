"""The pool: reuse without memory of earlier users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bat_core.errors import SandboxUnavailable, SnapshotMismatch
from bat_core.model.sandbox import SandboxSpec, SnapshotRef
from bat_core.sandboxes.pool import SandboxPool
from bat_core.sandboxes.provider import AgentProvider

Spec = Callable[..., SandboxSpec]


def test_a_sandbox_is_reused_and_remembers_nothing(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        states = [provider.store.put_files({"a": b"1", "d/b": b"2"}), provider.store.put_files({"c": b"3"})]
        async with SandboxPool(provider, spec(provider.name), 1) as pool:
            seen = set()
            for number in range(4):
                box = await pool.acquire(states[number % 2])
                seen.add(box.id)
                assert await box.snapshot() == states[number % 2]
                await box.exec(["sh", "-c", "echo mess > mess; rm -rf d; setsid sleep 60 &"])
                await pool.release(box)
                await pool.release(box)
            assert len(seen) == 1

    asyncio.run(body())


def test_no_more_than_size_are_out(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        ref = provider.store.put_files({})
        out = most = 0

        async def use(pool: SandboxPool) -> str:
            nonlocal out, most
            box = await pool.acquire(ref)
            out += 1
            most = max(most, out)
            await box.exec(["sleep", "0.1"])
            out -= 1
            await pool.release(box)
            return box.id

        async with SandboxPool(provider, spec(provider.name), 2) as pool:
            ids = await asyncio.gather(*[use(pool) for _ in range(10)])
        assert most == 2 and len(set(ids)) <= 2

    asyncio.run(body())


def test_the_dead_are_replaced(strong: AgentProvider, spec: Spec, census: Any, kill: Callable[..., None]) -> None:
    async def body() -> None:
        ref = strong.store.put_files({"a": b"1"})
        async with SandboxPool(strong, spec(strong.name), 1) as pool:
            first = await pool.acquire(ref)
            await pool.release(first)
            kill(strong, census)
            await asyncio.sleep(0.1)
            second = await pool.acquire(ref)
            assert second.id != first.id and await second.read("a") == b"1"
            call = asyncio.create_task(second.exec(["sleep", "30"]))
            await asyncio.sleep(0.1)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await pool.release(second)
            third = await pool.acquire(ref)
            assert third.id != second.id and await third.read("a") == b"1"

    asyncio.run(body())


def test_the_old_are_replaced_before_they_end_in_use(strong: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        ref = strong.store.put_files({})
        async with SandboxPool(strong, spec(strong.name, limits={"lifetime_s": 1.0}), 1) as pool:
            first = await pool.acquire(ref)
            await pool.release(first)
            await asyncio.sleep(0.6)
            second = await pool.acquire(ref)
            assert second.id != first.id
            await asyncio.sleep(1.1)
            with pytest.raises(SandboxUnavailable):
                await second.exec(["true"])

    asyncio.run(body())


def test_a_damaged_state_costs_no_place(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        async with SandboxPool(provider, spec(provider.name), 1) as pool:
            for _ in range(2):
                with pytest.raises(SnapshotMismatch):
                    await pool.acquire(SnapshotRef(root="sha256:" + "1" * 64))
            await asyncio.wait_for(pool.acquire(provider.store.put_files({})), 10)

    asyncio.run(body())


@pytest.mark.parametrize("after", [0.0, 0.02, 0.1])
def test_cancelled_waiters_cost_no_place(provider: AgentProvider, spec: Spec, after: float) -> None:
    async def body() -> None:
        ref = provider.store.put_files({"a": b"1"})
        async with SandboxPool(provider, spec(provider.name), 1) as pool:
            for _ in range(3):
                waiting = asyncio.create_task(pool.acquire(ref))
                await asyncio.sleep(after)
                waiting.cancel()
                done = (await asyncio.gather(waiting, return_exceptions=True))[0]
                if not isinstance(done, BaseException):
                    await pool.release(done)
            box = await asyncio.wait_for(pool.acquire(ref), 10)
            assert await box.read("a") == b"1"

    asyncio.run(body())


def test_a_closed_pool_hands_out_nothing(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        pool = SandboxPool(provider, spec(provider.name), 2)
        box = await pool.acquire(provider.store.put_files({}))
        await pool.aclose()
        await pool.aclose()
        await pool.release(box)
        with pytest.raises(SandboxUnavailable):
            await box.exec(["true"])
        with pytest.raises(SandboxUnavailable, match="pool is closed"):
            await pool.acquire(provider.store.put_files({}))

    asyncio.run(body())


def test_a_provider_that_cannot_open_is_an_error_not_a_loop(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        async with SandboxPool(provider, spec(provider.name, preload=("no_such_module",)), 1) as pool:
            for _ in range(2):
                with pytest.raises(SandboxUnavailable, match="no_such_module"):
                    await pool.acquire(provider.store.put_files({}))

    asyncio.run(body())
