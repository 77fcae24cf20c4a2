"""The process behind a sandbox: started from the caller's thread, ended for good, never leaked."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Protocol

from bat_core.sandboxes.channel import Channel

_TELL = 2000
_WIDE = 1 << 18


class Line(Protocol):
    """What a sandbox hangs on: a conversation with its agent, and its end."""

    @property
    def channel(self) -> Channel:
        """The conversation."""

    @property
    def alive(self) -> bool:
        """Whether it runs and nobody has begun to end it."""

    def last_words(self) -> str:
        """Return what was said on standard error, on one line."""

    def oom_kills(self) -> int:
        """Return how many processes were killed for memory, as far as only the host can see it."""

    async def end(self) -> None:
        """Kill and wait until nothing is left. Goes on in the background when the caller is cancelled."""


class Lifeline:
    """A child process that talks over its standard streams, and its end.

    It is started directly in the calling thread, not in a pool's: bubblewrap dies with the *thread* that made it.

    Args:
        argv: Command line.
        env: Its environment.
        max_body: Longest answer accepted.
        pass_fds: Handles that the child inherits.
        options: Further arguments of `subprocess.Popen`.
        info: Reading end on which bubblewrap tells the first process's id; owned from here on.
        gentle: Ask by closing the pipes, and kill only a process that doesn't go: it has to clear up itself.
        finish: Called once after the process is gone.
        oom_kills: Counts processes that were killed for memory.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        max_body: int,
        *,
        pass_fds: Sequence[int] = (),
        options: Mapping[str, Any] | None = None,
        info: int = -1,
        gentle: bool = False,
        finish: Callable[[], None] | None = None,
        oom_kills: Callable[[], int] | None = None,
    ) -> None:
        self._info = info
        self._gentle = gentle
        self._finish = finish
        self.oom_kills = oom_kills or (lambda: 0)
        self._ending: asyncio.Task[None] | None = None
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of the process
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            ours.callback(self._close_info)
            ours.callback(self._said.close)
            to_child, outgoing = _wide_pipe()
            theirs.callback(os.close, to_child)
            ours.callback(os.close, outgoing)
            incoming, from_child = _wide_pipe()
            ours.callback(os.close, incoming)
            theirs.callback(os.close, from_child)
            self._process = subprocess.Popen(
                list(argv), stdin=to_child, stdout=from_child, stderr=self._said, env=dict(env),
                pass_fds=pass_fds, start_new_session=True, **(options or {}),
            )  # fmt: skip
            ours.pop_all()
        self.channel = Channel(incoming, outgoing, max_body)

    @property
    def alive(self) -> bool:
        """Whether the process runs and nobody has begun to end it."""
        return self._ending is None and self._process.poll() is None

    def last_words(self) -> str:
        """Return what was said on standard error until the agent took over, on one line."""
        if self._said.closed:
            return ""
        size = os.fstat(self._said.fileno()).st_size
        data = os.pread(self._said.fileno(), _TELL, max(0, size - _TELL))
        return " | ".join(line.strip() for line in data.decode(errors="replace").splitlines()[-3:] if line.strip())

    async def end(self) -> None:
        """Kill and wait until nothing is left. Goes on in the background when the caller is cancelled."""
        if self._ending is None or self._ending.cancelled():
            self._kill()
            self._ending = asyncio.get_running_loop().create_task(self._wait())
        if self._ending.get_loop() is asyncio.get_running_loop():
            await asyncio.shield(self._ending)

    def _kill(self) -> None:
        """Kill the first process inside, so that the outer one sees the whole namespace end; else the outer one."""
        if self._gentle:
            self.channel.close()
            return
        first = self._first_process()
        for pid in [first] if first else [self._process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if self._process.poll() is None:
                    os.kill(pid, signal.SIGKILL)

    def _first_process(self) -> int | None:
        """Return the host's id of the sandbox's first process. It can't be reused before the outer one is reaped."""
        if self._info < 0:
            return None
        os.set_blocking(self._info, False)
        try:
            told = os.read(self._info, 4096)
            return int(json.loads(told)["child-pid"]) if told else None
        except (BlockingIOError, ValueError, KeyError):
            return None

    async def _wait(self) -> None:
        try:
            handle = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            handle = -1
        try:
            await self._ended(handle)
        finally:
            if handle >= 0:
                os.close(handle)
            self._process.wait()
            self.channel.close()
            self._said.close()
            self._close_info()
            if self._finish is not None:
                self._finish()

    async def _ended(self, handle: int) -> None:
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        if handle >= 0:
            loop.add_reader(handle, gone.set)
        try:
            for turn in range(1 << 30):
                if self._process.poll() is not None:
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(gone.wait(), 1.0 if handle >= 0 else 0.005)
                if turn >= 2 and self._process.poll() is None:
                    self._process.kill()  # the first process was killed but its keeper lingers
        finally:
            if handle >= 0:
                loop.remove_reader(handle)

    def _close_info(self) -> None:
        if self._info >= 0:
            os.close(self._info)
            self._info = -1


def _wide_pipe() -> tuple[int, int]:
    """Return a pipe that takes a small workspace at once, so that fewer turns are needed."""
    source, sink = os.pipe()
    with contextlib.suppress(OSError, AttributeError):  # a user's share of pipe memory may be used up
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _WIDE)
    return source, sink
