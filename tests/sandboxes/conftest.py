"""Live sandboxes for tests: `inside` runs a coroutine in one of each backend, `isolated` in a real one only.

Sandboxes are reset and reused between tests, as in a run; tests of their life take a `provider` of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import DEFAULT_GUARANTEES, Limits, SandboxSpec
from bat_core.sandboxes.bubblewrap import REMEDY, BubblewrapProvider, find_bwrap
from bat_core.sandboxes.provider import AgentProvider
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

T = TypeVar("T")
BACKENDS: dict[str, type[AgentProvider]] = {
    "bubblewrap": BubblewrapProvider,
    "unsafe-process": UnsafeProcessProvider,
}


def spec_for(name: str, **fields: Any) -> SandboxSpec:
    limits = Limits(**({"disk": 64 << 20, "exec_s": 20.0} | fields.pop("limits", {})))
    require = DEFAULT_GUARANTEES if name == "bubblewrap" else frozenset()
    known: dict[str, Any] = {"limits": limits, "require": require}
    return SandboxSpec(**(known | fields))


class Inside:
    """Calls a coroutine function with an empty sandbox."""

    def __init__(self, provider: AgentProvider) -> None:
        self.provider = provider
        self.store = provider.store
        self._open: dict[str, Any] = {}

    def __call__(self, body: Callable[[Sandbox], Awaitable[T]], **fields: Any) -> T:
        return asyncio.run(self._whole(body, spec_for(self.provider.name, **fields)))

    async def _whole(self, body: Callable[[Sandbox], Awaitable[T]], spec: SandboxSpec) -> T:
        key = spec.model_dump_json()
        box = self._open.pop(key, None)
        if box is None or not box.alive:
            box = await self.provider.open(spec)
        self._open[key] = box
        while len(self._open) > 3:
            await self._open.pop(next(iter(self._open))).stop()
        await box.restore(self.store.put_files({}))
        return await body(box)


@pytest.fixture(scope="session", autouse=True)
def bwrap_is_there() -> None:
    assert find_bwrap() is not None, f"bubblewrap is missing: {REMEDY}"


@pytest.fixture(scope="session")
def insides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Inside]]:
    made = {name: Inside(backend(tmp_path_factory.mktemp("store"))) for name, backend in BACKENDS.items()}
    yield made
    for one in made.values():
        asyncio.run(one.provider.aclose())


@pytest.fixture(params=sorted(BACKENDS))
def inside(request: pytest.FixtureRequest, insides: dict[str, Inside]) -> Inside:
    return insides[request.param]


@pytest.fixture
def isolated(insides: dict[str, Inside]) -> Inside:
    return insides["bubblewrap"]


@pytest.fixture(params=sorted(BACKENDS))
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> AgentProvider:
    return BACKENDS[request.param](tmp_path / "store")


@pytest.fixture
def bubblewrap(tmp_path: Path) -> BubblewrapProvider:
    return BubblewrapProvider(tmp_path / "store")


@pytest.fixture
def spec() -> Callable[..., SandboxSpec]:
    return spec_for
