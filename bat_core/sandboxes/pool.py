"""Sandboxes that are opened once and reused: a reset costs milliseconds, opening one costs a hundred times that."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from types import TracebackType

from bat_core.errors import SandboxUnavailable
from bat_core.hooks.sandbox import Sandbox, SandboxProvider
from bat_core.model.sandbox import SandboxSpec, SnapshotRef


class SandboxPool:
    """Up to `size` live sandboxes of one spec, handed out restored to a state. For one event loop.

    A reset kills everything inside, empties the workspace, /tmp and /dev/shm, restores, and verifies the tree hash.
    A sandbox that died, whose user was cancelled in a call, or half of whose lifetime is over, is replaced. The agent
    in a sandbox lives on, so what grades a program belongs into another pool than the program.

    Args:
        provider: Opens them; stays the caller's to close.
        spec: What each of them is.
        size: How many may be out at once.
    """

    def __init__(self, provider: SandboxProvider, spec: SandboxSpec, size: int) -> None:
        if size < 1:
            raise ValueError("a pool needs a size of at least 1")
        self.provider = provider
        self.spec = spec
        self.size = size
        self._idle: list[Sandbox] = []
        self._out: set[Sandbox] = set()
        self._places = asyncio.Semaphore(size)
        self._opening = asyncio.Semaphore(os.cpu_count() or 1)
        self._closed = False

    async def __aenter__(self) -> SandboxPool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def acquire(self, ref: SnapshotRef) -> Sandbox:
        """Return a sandbox whose workspace is exactly `ref`; wait while all are out.

        Raises `SandboxUnavailable` if even a new one can't be had, `SnapshotMismatch` if `ref` is damaged.
        """
        await self._places.acquire()
        ready = None
        try:
            ready = await self._ready(ref)
        finally:
            if ready is None:
                self._places.release()
        return ready

    async def release(self, sandbox: Sandbox) -> None:
        """Take `sandbox` back for reuse; whatever it held is wiped before anybody else sees it."""
        if sandbox not in self._out:
            return
        self._out.discard(sandbox)
        self._places.release()
        if self._closed or not _usable(sandbox):
            await sandbox.stop()
        else:
            self._idle.append(sandbox)

    async def aclose(self) -> None:
        """Stop all sandboxes, also those that are out. Idempotent."""
        self._closed = True
        every: Sequence[Sandbox] = [*self._idle, *self._out]
        self._idle.clear()
        self._out.clear()
        for sandbox in every:
            await sandbox.stop()

    async def _ready(self, ref: SnapshotRef) -> Sandbox:
        while True:
            if self._closed:
                raise SandboxUnavailable("the sandbox pool is closed", remedy="open another pool")
            await self._weed()
            fresh = not self._idle
            sandbox = await self._open() if fresh else self._idle.pop()
            self._out.add(sandbox)
            restored = False
            try:
                await sandbox.restore(ref)  # its answer is the sign of life, too
                restored = True
            except SandboxUnavailable:
                if fresh:
                    raise
            finally:
                if not restored:
                    await self._drop(sandbox)
            if restored:
                return sandbox

    async def _weed(self) -> None:
        """Stop the idle ones that died or grew old."""
        spent = [sandbox for sandbox in self._idle if not _usable(sandbox)]
        self._idle = [sandbox for sandbox in self._idle if sandbox not in spent]
        for sandbox in spent:
            await sandbox.stop()

    async def _open(self) -> Sandbox:
        async with self._opening:
            return await self.provider.open(self.spec)

    async def _drop(self, sandbox: Sandbox) -> None:
        self._out.discard(sandbox)
        await sandbox.stop()


def _usable(sandbox: Sandbox) -> bool:
    """Whether it's worth keeping; one that can't tell is, as its next restore will."""
    return bool(getattr(sandbox, "alive", True)) and not getattr(sandbox, "aged", False)
