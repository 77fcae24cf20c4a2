"""Opening, ending, cancelling and dying: nothing is left and nothing is mistaken for a result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bat_core.errors import CapabilityError, SandboxUnavailable
from bat_core.model.sandbox import Guarantee, SandboxSpec
from bat_core.sandboxes.provider import AgentProvider

Spec = Callable[..., SandboxSpec]
Census = Callable[..., Any]


def test_opening_and_ending_leaves_nothing(provider: AgentProvider, spec: Spec, census: Any) -> None:
    async def body() -> None:
        for _ in range(3):
            sandbox = await provider.open(spec(provider.name))
            await sandbox.exec(["sh", "-c", "setsid sleep 60 & true"])
            await sandbox.stop()
            await sandbox.stop()
            with pytest.raises(SandboxUnavailable, match="has ended; open another"):
                await sandbox.exec(["true"])

    asyncio.run(body())
    asyncio.run(provider.aclose())
    before = census(provider)
    asyncio.run(body())
    asyncio.run(provider.aclose())
    assert census(provider) == before


def test_closing_the_provider_ends_all(provider: AgentProvider, spec: Spec, census: Any) -> None:
    async def body() -> None:
        await asyncio.gather(*[provider.open(spec(provider.name)) for _ in range(3)])
        assert not _none(provider, census)
        await provider.aclose()
        await provider.aclose()
        assert _none(provider, census)

    asyncio.run(body())


def test_eight_at_once(provider: AgentProvider, spec: Spec, census: Any) -> None:
    async def one(number: int) -> bytes:
        sandbox = await provider.open(spec(provider.name))
        try:
            await sandbox.write("n", str(number).encode())
            results = [await sandbox.exec(["sh", "-c", "cat n; sleep 0.05"]) for _ in range(3)]
            return b"".join(result.stdout for result in results)
        finally:
            await sandbox.stop()

    async def body() -> None:
        assert await asyncio.gather(*[one(number) for number in range(8)]) == [
            str(number).encode() * 3 for number in range(8)
        ]

    asyncio.run(body())


def test_calls_of_one_sandbox_take_turns(provider: AgentProvider, spec: Spec, census: Any) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        results = await asyncio.gather(*[sandbox.exec(["echo", str(number)]) for number in range(5)])
        assert [int(result.stdout) for result in results] == list(range(5))
        await sandbox.stop()

    asyncio.run(body())


def test_a_cancelled_call_ends_the_sandbox_and_all_in_it(
    provider: AgentProvider, spec: Spec, census: Any, running: Callable[[str], bool]
) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        call = asyncio.create_task(sandbox.exec(["sh", "-c", "setsid sleep 4757 & sleep 4758"]))
        await asyncio.sleep(0.2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(SandboxUnavailable):
            await sandbox.exec(["true"])
        await sandbox.stop()
        assert _none(provider, census)

    asyncio.run(body())
    assert not running("sleep 4757") and not running("sleep 4758")


@pytest.mark.parametrize("after", [0.0, 0.01, 0.03, 0.06])
def test_cancelling_an_opening_leaves_nothing(provider: AgentProvider, spec: Spec, census: Any, after: float) -> None:
    async def body() -> None:
        opening = asyncio.create_task(provider.open(spec(provider.name, preload=("numpy",))))
        await asyncio.sleep(after)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await provider.aclose()
        assert _none(provider, census)

    asyncio.run(body())
    asyncio.run(provider.aclose())
    before = census(provider)
    asyncio.run(body())
    asyncio.run(provider.aclose())
    assert census(provider) == before


def test_a_cancelled_stop_still_stops(provider: AgentProvider, spec: Spec, census: Any) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        stopping = asyncio.create_task(sandbox.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        await sandbox.stop()
        assert _none(provider, census)

    asyncio.run(body())


def test_what_is_required_and_not_guaranteed_is_refused(provider: AgentProvider) -> None:
    async def body() -> None:
        with pytest.raises(CapabilityError, match=r"can't guarantee .*kernel.*; choose another"):
            await provider.open(SandboxSpec(require=frozenset({Guarantee.KERNEL})))

    asyncio.run(body())


def test_a_killed_sandbox_is_our_failure_not_a_result(
    provider: AgentProvider, spec: Spec, census: Any, kill: Callable[..., None]
) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        call = asyncio.create_task(sandbox.exec(["sleep", "30"]))
        await asyncio.sleep(0.1)
        kill(provider, census)
        with pytest.raises(SandboxUnavailable, match="is lost"):
            await call
        await sandbox.stop()
        other = await provider.open(spec(provider.name))
        assert (await other.exec(["echo", "ok"])).stdout == b"ok\n"
        await provider.aclose()

    asyncio.run(body())


def _none(provider: AgentProvider, census: Any) -> bool:
    now = census(provider)
    return not now.children and not now.containers
