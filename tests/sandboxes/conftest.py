"""Live sandboxes for tests: `inside` runs a coroutine in one of each backend, `isolated` in the strong ones only.

Sandboxes are reset and reused between tests, as in a run; tests of their life take a `provider` of their own.
`BAT_REQUIRE=docker,bubblewrap` names the backends that must be there: a required one that is missing fails its tests.
Without it a missing Docker engine skips them, and says so at the end of the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from bat_core.errors import SandboxUnavailable
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import DEFAULT_GUARANTEES, Limits, SandboxSpec
from bat_core.sandboxes.bubblewrap import REMEDY, BubblewrapProvider, find_bwrap
from bat_core.sandboxes.docker.container import OWNER
from bat_core.sandboxes.docker.engine import Engine
from bat_core.sandboxes.docker.provider import DockerProvider
from bat_core.sandboxes.landlock import LandlockProvider
from bat_core.sandboxes.owner import this_process
from bat_core.sandboxes.provider import AgentProvider
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

T = TypeVar("T")
BACKENDS: dict[str, type[AgentProvider]] = {
    "bubblewrap": BubblewrapProvider,
    "docker": DockerProvider,
    "landlock": LandlockProvider,
    "unsafe-process": UnsafeProcessProvider,
}
STRONG = ("bubblewrap", "docker")
NO_DOCKER = "no Docker engine: "


def marked(names: Iterable[str]) -> list[Any]:
    """Return parameters, those that need a Docker engine marked."""
    return [pytest.param(name, marks=pytest.mark.docker) if name == "docker" else name for name in names]


@functools.cache
def _why_no_docker() -> str:
    engine = Engine()
    try:
        engine.api()
    except SandboxUnavailable as error:
        return str(error)
    engine.close()
    return ""


def need(name: str) -> None:
    """Skip the test, or fail it, where its backend is missing."""
    if name != "docker" or not _why_no_docker():
        return
    if "docker" in os.environ.get("BAT_REQUIRE", "").split(","):
        pytest.fail(f"BAT_REQUIRE names docker: {_why_no_docker()}", pytrace=False)
    pytest.skip(NO_DOCKER + _why_no_docker())


def spec_for(name: str, **fields: Any) -> SandboxSpec:
    limits = Limits(**({"disk": 64 << 20, "exec_s": 20.0} | fields.pop("limits", {})))
    require = DEFAULT_GUARANTEES if name in STRONG else frozenset()
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


@pytest.fixture(params=marked(sorted(BACKENDS)))
def inside(request: pytest.FixtureRequest, insides: dict[str, Inside]) -> Inside:
    need(request.param)
    return insides[request.param]


@pytest.fixture(params=marked(STRONG))
def isolated(request: pytest.FixtureRequest, insides: dict[str, Inside]) -> Inside:
    need(request.param)
    return insides[request.param]


@pytest.fixture(params=marked(sorted(BACKENDS)))
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentProvider]:
    need(request.param)
    made = BACKENDS[request.param](tmp_path / "store")
    yield made
    asyncio.run(made.aclose())


@pytest.fixture(params=marked(STRONG))
def strong(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentProvider]:
    need(request.param)
    made = BACKENDS[request.param](tmp_path / "store")
    yield made
    asyncio.run(made.aclose())


@pytest.fixture
def bubblewrap(tmp_path: Path) -> BubblewrapProvider:
    return BubblewrapProvider(tmp_path / "store")


@pytest.fixture
def docker(tmp_path: Path) -> Iterator[DockerProvider]:
    need("docker")
    made = DockerProvider(tmp_path / "store")
    yield made
    asyncio.run(made.aclose())


@pytest.fixture
def spec() -> Callable[..., SandboxSpec]:
    return spec_for


class Left(NamedTuple):
    """What lives because of this process: nothing may be added by sandboxes that came and went."""

    children: frozenset[int]
    handles: int
    threads: int
    containers: int
    mounts: int
    groups: int
    files: frozenset[str]


class Census:
    """Counts what is there, but for the processes and containers that other tests keep."""

    def __init__(self) -> None:
        self._kept = _children()
        self._kept_containers = frozenset() if _why_no_docker() else _containers()

    def children(self) -> frozenset[int]:
        return _children() - self._kept

    def containers(self, provider: AgentProvider | None) -> frozenset[str]:
        return _containers() - self._kept_containers if isinstance(provider, DockerProvider) else frozenset()

    def __call__(self, provider: AgentProvider | None = None) -> Left:
        return Left(
            self.children(),
            len([*Path("/proc/self/fd").iterdir()]),
            sum(not one.name.startswith("bat-docker") for one in threading.enumerate()),
            len(self.containers(provider)),
            sum("/bat-" in line and "engine" not in line for line in _lines("/proc/self/mountinfo")),
            sum(1 for _ in Path("/sys/fs/cgroup").glob(f"**/bat-*{os.getpid()}*")),
            frozenset(path.name for path in Path(tempfile.gettempdir()).glob(f"bat-*{os.getpid()}*")),
        )


def _lines(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").splitlines()


def _children() -> frozenset[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                found.add(int(entry.name))
    return frozenset(found)


def _containers() -> frozenset[str]:
    """Return the containers that this process owns."""
    engine = Engine()
    found = engine.api().containers(all=True, filters={"label": f"{OWNER}={this_process()}"})
    engine.close()
    return frozenset(one["Id"] for one in found)


@pytest.fixture
def census() -> Census:
    return Census()


@pytest.fixture
def kill() -> Callable[[AgentProvider, Census], None]:
    """End the one sandbox of a provider from outside, as a machine in trouble would."""

    def end(provider: AgentProvider, census: Census) -> None:
        if isinstance(provider, DockerProvider):
            (name,) = census.containers(provider)
            provider.engine.api().kill(name)
        else:
            (victim,) = census.children()
            os.kill(victim, signal.SIGKILL)

    return end


@pytest.fixture
def running() -> Callable[[str], bool]:
    """Whether a command that begins so still runs anywhere on the host; it gets two seconds to go."""

    def lives(text: str) -> bool:
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if not any(line.startswith(text) for line in _command_lines()):
                return False
            time.sleep(0.05)
        return True

    return lives


def _command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_text(errors="replace").replace("\0", " ")
