"""The Docker SDK as a coroutine's friend: its blocking calls run in a few threads, each with a timeout."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from bat_core.errors import SandboxUnavailable

T = TypeVar("T")
THREADS = 8
CALL_S = 60.0
OLDEST = (1, 41)  # what every part used here is known to
REMEDY = "start a Docker engine (or set DOCKER_HOST to its socket) and pip install 'bat-core[docker]'"


class Engine:
    """A connection to one engine, made at the first call."""

    def __init__(self) -> None:
        self._client: Any = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="bat-docker")
        self._begun: set[Future[Any]] = set()

    def api(self) -> Any:
        """Return the SDK's client. Raises `SandboxUnavailable` with the reason in one line."""
        if self._client is None:
            self._client = _connect()
        return self._client

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work` in a thread; once begun nothing cancels it."""
        future = self._threads.submit(work)
        self._begun.add(future)
        future.add_done_callback(self._begun.discard)
        return future

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread. Cancelling the caller leaves it running."""
        return await asyncio.shield(asyncio.wrap_future(self.submit(work)))

    async def settle(self) -> None:
        """Wait until all that was begun is done, also what nobody waits for any more."""
        begun = [asyncio.wrap_future(future) for future in list(self._begun)]
        if begun:
            await asyncio.shield(asyncio.gather(*begun, return_exceptions=True))

    def close(self) -> None:
        """Drop the connection; a later call makes another."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _connect() -> Any:
    try:
        import docker
        from docker.errors import DockerException
        from requests.exceptions import RequestException
    except ImportError as error:
        raise SandboxUnavailable(f"the Docker SDK can't be imported ({error})", remedy=REMEDY) from error
    place = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not place.startswith(("unix://", "http+unix://")):
        raise SandboxUnavailable(f"DOCKER_HOST is {place!r}, but attaching needs a local socket", remedy=REMEDY)
    try:
        client = docker.APIClient(base_url=place, version="auto", timeout=CALL_S, max_pool_size=THREADS)
    except (DockerException, RequestException) as error:
        raise SandboxUnavailable(f"no Docker engine answers at {place} ({brief(error)})", remedy=REMEDY) from error
    version = tuple(int(part) for part in str(client.api_version).split("."))
    if version < OLDEST:
        client.close()
        raise SandboxUnavailable(f"the Docker engine at {place} speaks API {client.api_version}", remedy=REMEDY)
    return client


def failures() -> tuple[type[Exception], ...]:
    """Return what the SDK raises when the engine refuses or is gone."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    return DockerException, RequestException, OSError


def brief(error: BaseException) -> str:
    """Return the engine's own words on one line, or what the operating system said when it could not be asked."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    said = getattr(error, "explanation", None) or str(error) or type(error).__name__
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return " ".join(text.split())[:300]
