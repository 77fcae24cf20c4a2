"""Live sandboxes for tests: `inside` runs a coroutine in one of each backend, `isolated` in a real one only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import DEFAULT_GUARANTEES, Limits, SandboxSpec
from bat_core.sandboxes.bubblewrap import REMEDY, BubblewrapProvider, find_bwrap
from bat_core.sandboxes.provider import AgentProvider
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

T = TypeVar("T")
Inside = Callable[..., Any]
BACKENDS = {"bubblewrap": BubblewrapProvider, "unsafe-process": UnsafeProcessProvider}


def spec_for(name: str, **fields: Any) -> SandboxSpec:
    limits = Limits(**({"disk": 64 << 20, "exec_s": 20.0} | fields.pop("limits", {})))
    require = DEFAULT_GUARANTEES if name == "bubblewrap" else frozenset()
    return SandboxSpec(**({"limits": limits, "require": require} | fields))


def runner(provider: AgentProvider) -> Inside:
    def inside(body: Callable[[Sandbox], Awaitable[T]], **fields: Any) -> T:
        async def whole() -> T:
            sandbox = await provider.open(spec_for(provider.name, **fields))
            try:
                return await body(sandbox)
            finally:
                await sandbox.stop()

        return asyncio.run(whole())

    return inside


@pytest.fixture(scope="session", autouse=True)
def bwrap_is_there() -> None:
    assert find_bwrap() is not None, f"bubblewrap is missing: {REMEDY}"


@pytest.fixture(params=sorted(BACKENDS))
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> AgentProvider:
    return BACKENDS[request.param](tmp_path / "store")


@pytest.fixture
def bubblewrap(tmp_path: Path) -> BubblewrapProvider:
    return BubblewrapProvider(tmp_path / "store")


@pytest.fixture
def inside(provider: AgentProvider) -> Inside:
    return runner(provider)


@pytest.fixture
def isolated(bubblewrap: BubblewrapProvider) -> Inside:
    return runner(bubblewrap)


@pytest.fixture
def spec() -> Callable[..., SandboxSpec]:
    return spec_for
