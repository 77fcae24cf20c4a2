"""One container from birth to removal: made whole or undone, and removed for good whoever is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from loguru import logger

from bat_core.errors import SandboxUnavailable
from bat_core.sandboxes.docker.attach import AttachedChannel
from bat_core.sandboxes.docker.engine import Engine, brief, failures

_GONE_S = 30.0
OWNER = "bat.owner"


class Container:
    """A running container and the conversation with its agent.

    Args:
        engine: Where it runs.
        name: Its id.
        channel: The attached stream.
    """

    def __init__(self, engine: Engine, name: str, channel: AttachedChannel) -> None:
        self.name = name
        self.channel = channel
        self._engine = engine
        self._removal: Future[bool] | None = None

    @property
    def alive(self) -> bool:
        """Whether its agent is still attached and nobody has begun to end it."""
        return self._removal is None and self.channel.open

    def last_words(self) -> str:
        """Return what was said on standard error until the agent took over, on one line."""
        lines = self.channel.said.decode(errors="replace").splitlines()[-3:]
        return " | ".join(line.strip() for line in lines if line.strip())

    def oom_kills(self) -> int:
        """Return 0: the agent in a container sees for itself."""
        return 0

    async def end(self) -> None:
        """Remove it and wait until it is gone. Goes on in its thread when the caller is cancelled."""
        if self._removal is None:
            self.channel.close()
            self._removal = self._engine.submit(lambda: remove(self._engine, self.name))
        await asyncio.shield(asyncio.wrap_future(self._removal))


class Birth:
    """A container that is being made in a thread, and may be given up meanwhile.

    Args:
        engine: Where to make it.
        options: Arguments of the SDK's `create_container`.
        max_body: Longest answer that is accepted from it.
    """

    def __init__(self, engine: Engine, options: Mapping[str, Any], max_body: int) -> None:
        self._engine = engine
        self._options = options
        self._max_body = max_body
        self._lock = threading.Lock()
        self._given_up = False

    async def container(self) -> Container:
        """Return the started container; when cancelled, wait until it is undone.

        Raises:
            SandboxUnavailable: If the engine refuses.
        """
        making = asyncio.wrap_future(self._engine.submit(self._make))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            with self._lock:
                self._given_up = True
            await asyncio.shield(asyncio.get_running_loop().create_task(_ended(making)))
            raise

    def _make(self) -> Container:
        api = self._engine.api()
        try:
            name: str = api.create_container(**self._options)["Id"]
        except failures() as error:
            raise _refused(error) from error
        with contextlib.ExitStack() as undo:
            undo.callback(remove, self._engine, name)
            try:
                channel = AttachedChannel(_attach(api, name), self._max_body)
                undo.callback(channel.close)
                api.start(name)
            except failures() as error:
                raise _refused(error) from error
            with self._lock:
                if self._given_up:
                    raise _GivenUp()
            undo.pop_all()
            return Container(self._engine, name, channel)


class _GivenUp(SandboxUnavailable):
    """Nobody waits for the container any more; it has been removed."""

    def __init__(self) -> None:
        super().__init__("the sandbox was given up while it was made", remedy="open another one")


async def _ended(making: asyncio.Future[Container]) -> None:
    with contextlib.suppress(SandboxUnavailable):  # nobody waits for its reason any more
        await (await asyncio.shield(making)).end()


def _attach(api: Any, name: str) -> int:
    """Return a socket handle of our own on the container's three streams."""
    stream = api.attach_socket(name, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
    answer = getattr(stream, "_response", None)
    try:
        return os.dup(stream.fileno())
    finally:
        (answer or stream).close()  # closing the stream alone leaves its socket to the garbage collector


def remove(engine: Engine, name: str) -> bool:
    """Kill and remove a container, and wait until the engine has forgotten it; False if it wouldn't go."""
    api = engine.api()
    gone_by = time.monotonic() + _GONE_S
    said = ""
    while time.monotonic() < gone_by:
        try:
            api.remove_container(name, force=True, v=True)
            return True
        except failures() as error:
            if getattr(error, "status_code", None) == 404 or _gone(api, name):
                return True
            said = brief(error)  # often: removal is already in progress
        time.sleep(0.02)
    logger.warning("docker: container {} can't be removed ({}); it ends at its lifetime", name[:12], said)
    return False


def _gone(api: Any, name: str) -> bool:
    try:
        api.inspect_container(name)
    except failures() as error:
        return getattr(error, "status_code", None) == 404
    return False


def _refused(error: Exception) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"the Docker engine can't start a sandbox ({brief(error)})",
        remedy="mend the engine, or choose another sandbox.provider",
    )


def with_api(engine: Engine, work: Callable[[Any], Any]) -> Any:
    """Call `work` with the SDK's client. Raises `SandboxUnavailable` for what the engine refuses."""
    api = engine.api()
    try:
        return work(api)
    except failures() as error:
        raise _refused(error) from error
