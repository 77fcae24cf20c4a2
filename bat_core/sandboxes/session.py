"""A live sandbox as seen from the host: calls of the `Sandbox` interface, spoken to the agent."""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from bat_core.errors import OutputLimit, SandboxUnavailable, SnapshotMismatch
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import Entry, ExecResult, Guarantee, SandboxSpec, SnapshotRef
from bat_core.sandboxes.inside.frames import Closed, Frame
from bat_core.sandboxes.lifeline import Line
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.sandboxes.tarball import BadTar, decode

_GRACE_S = 30.0
_START_S = 120.0


class AgentSandbox(Sandbox):
    """A sandbox whose first process is our agent.

    Args:
        provider: Name of the provider that opened it.
        spec: What was asked for.
        guarantees: What the provider promises.
        lifeline: What runs it, and the conversation with its agent.
        store: Where snapshots go.
        mapped: Rewrites text that names `/workspace` where the workspace lies elsewhere.
    """

    def __init__(
        self,
        provider: str,
        spec: SandboxSpec,
        guarantees: frozenset[Guarantee],
        lifeline: Line,
        store: SnapshotStore,
        mapped: Callable[[str], str] | None = None,
    ) -> None:
        self.provider = provider  # type: ignore[misc]  # one class serves several providers
        self.id = f"{provider}-{secrets.token_hex(6)}"
        self.spec = spec
        self.guarantees = guarantees
        self._lifeline = lifeline
        self._store = store
        self._mapped = mapped or (lambda text: text)
        self._lock = asyncio.Lock()
        self._opened = time.monotonic()
        self._oom_kills = 0

    @property
    def alive(self) -> bool:
        """Whether it can still be called."""
        return self._lifeline.alive

    @property
    def aged(self) -> bool:
        """Whether half of its lifetime is over: time to be replaced, before it ends under somebody's hands."""
        return time.monotonic() - self._opened > self.spec.limits.lifetime_s / 2

    async def start(self, config: dict[str, Any]) -> None:
        """Hand the agent its configuration and wait until it is ready."""
        answer = (await self._call("start", wait=_START_S, **config)).header
        if answer.get("kind") == "preload":
            raise SandboxUnavailable(
                f"sandbox {self.provider} can't import a module of SandboxSpec.preload: {answer['message']}",
                remedy="install it beside bat-core, or drop it from the domain's sandbox spec",
            )

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> ExecResult:
        """Run `argv` in the workspace; whatever it started is dead when this returns.

        What can't be started is a result, with exit code 127 (not found) or 126 and the reason on standard error.
        """
        if not argv:
            raise ValueError("argv must hold at least the command")
        words = [self._mapped(part) for part in argv]
        return await self._run("exec", stdin, timeout, argv=words, env=dict(env or {}))

    async def python(self, code: str, *, timeout: float | None = None) -> ExecResult:
        """Run Python source in a fork of the warm interpreter."""
        return await self._run("python", self._mapped(code).encode("utf-8", "surrogatepass"), timeout)

    async def read(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """Return a regular file of the workspace."""
        limit = self.spec.limits.read if max_bytes is None else max_bytes
        return bytes((await self._ask("read", path=_relative(path), max_bytes=limit)).body)

    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a regular file of the workspace."""
        await self._ask("write", data, path=_relative(path), executable=executable)

    async def list(self) -> Sequence[Entry]:
        """Return all entries of the workspace, sorted by path."""
        body = bytes((await self._ask("list")).body)
        entries = []
        for line in body.split(b"\0") if body else ():
            kind, size, path = line.decode("utf-8", "surrogateescape").split(" ", 2)
            entries.append(Entry(path=path, kind=cast(Any, kind), size=int(size)))
        return entries

    async def collect(self) -> Mapping[str, bytes]:
        """Return all regular files of the workspace."""
        body = (await self._ask("collect", max_bytes=self.spec.limits.read)).body
        try:
            return {path: node.data for path, node in decode(body).items() if node.kind == "file"}
        except BadTar as error:
            raise await self._broken(f"its files can't be read: {error}") from error

    async def snapshot(self) -> SnapshotRef:
        """Seal the workspace into the content store; the hash is computed here, not believed."""
        return self._store.put_tar((await self._ask("pack")).body)

    async def restore(self, ref: SnapshotRef) -> None:
        """Make the workspace exactly `ref` and check that it is."""
        tar = self._store.tar(ref)
        try:
            root = (await self._ask("restore", tar)).header["root"]
        except OSError as error:
            raise SnapshotMismatch(
                f"snapshot {ref.root} can't be restored: {error.strerror}", remedy="raise SandboxSpec.limits.disk"
            ) from error
        if root != ref.root:
            raise SnapshotMismatch(
                f"sandbox {self.id} restored {root or 'more than its limits allow'} instead of {ref.root}",
                remedy="compare SandboxSpec.limits with the snapshot, then discard this sandbox",
            )

    async def stop(self) -> None:
        """End the sandbox; twice is fine, and cancellation doesn't undo it."""
        await self._lifeline.end()

    async def _run(self, op: str, body: bytes, timeout: float | None, **fields: Any) -> ExecResult:
        limit = self.spec.limits.exec_s if timeout is None else timeout
        header, output = await self._ask(op, body, wait=limit + _GRACE_S, timeout=limit, **fields)
        split = header.pop("split")
        header.pop("ok")
        if header["status"] == "killed" and header["rc"] == -signal.SIGKILL and self._out_of_memory():
            header |= {"status": "oom", "rc": None}
        return ExecResult(stdout=bytes(output[:split]), stderr=bytes(output[split:]), **header)

    def _out_of_memory(self) -> bool:
        """Whether a process was killed for memory since this was asked last."""
        before, self._oom_kills = self._oom_kills, self._lifeline.oom_kills()
        return self._oom_kills > before

    async def _ask(self, op: str, body: bytes = b"", *, wait: float = _GRACE_S, **fields: Any) -> Frame:
        """Call and turn a refusal into the exception it stands for."""
        frame = await self._call(op, body, wait=wait, **fields)
        header = frame.header
        if header.get("ok"):
            return frame
        if header["kind"] == "limit":
            raise OutputLimit(f"sandbox {self.id}: {header['message']}", remedy="raise SandboxSpec.limits")
        raise OSError(header["errno"], header["message"], fields.get("path"))

    async def _call(self, op: str, body: bytes = b"", *, wait: float = _GRACE_S, **fields: Any) -> Frame:
        async with self._lock:
            if not self.alive:
                raise await self._broken("it has ended")
            answer = None
            try:
                async with asyncio.timeout(wait):
                    answer = await self._lifeline.channel.call({"op": op, **fields}, body)
            except (Closed, OSError, ValueError, TimeoutError) as error:
                said = str(error) or f"no answer to {op} within {wait:.0f} s"
                raise await self._broken(said) from error
            finally:
                if answer is None:
                    await self._lifeline.end()  # half a conversation can't be continued
            return answer

    async def _broken(self, why: str) -> SandboxUnavailable:
        said = self._lifeline.last_words()
        await self._lifeline.end()
        detail = f"{why} ({said})" if said else why
        return SandboxUnavailable(f"sandbox {self.id} is lost: {detail}", remedy="open another one")


def _relative(path: str) -> str:
    """Return `path` as the agent takes it: `/workspace/a` and `a` are the same file."""
    return path.removeprefix("/workspace/") if path.startswith("/workspace/") else path
