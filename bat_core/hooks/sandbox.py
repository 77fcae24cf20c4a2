"""Sandbox and SandboxProvider: where untrusted code runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from bat_core.errors import CapabilityError
from bat_core.model.sandbox import Capabilities, Entry, ExecResult, Guarantee, SandboxSpec, SnapshotRef


class Sandbox(ABC):
    """One live sandbox with a workspace at `/workspace`. Not for concurrent calls.

    Raises `SandboxUnavailable` from any method when the backend died: our failure, never a result.
    """

    id: str
    provider: ClassVar[str]
    guarantees: frozenset[Guarantee]

    @abstractmethod
    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> ExecResult:
        """Run `argv` in the workspace; at the timeout everything it started is killed."""

    @abstractmethod
    async def python(self, code: str, *, timeout: float | None = None) -> ExecResult:
        """Run Python source as `__main__` in a fresh interpreter state with the spec's modules preloaded."""

    @abstractmethod
    async def read(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """Return a regular file of the workspace. Raises `OutputLimit`, `FileNotFoundError`."""

    @abstractmethod
    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a regular file into the workspace; folders appear as needed, links are not followed."""

    @abstractmethod
    async def list(self) -> Sequence[Entry]:
        """Return all entries of the workspace, sorted by path."""

    @abstractmethod
    async def collect(self) -> Mapping[str, bytes]:
        """Return all regular files of the workspace (path to content), within the spec's read limit in total."""

    @abstractmethod
    async def snapshot(self) -> SnapshotRef:
        """Kill what still runs, hash the tree, and put it into the content store; the sandbox goes on."""

    @abstractmethod
    async def restore(self, ref: SnapshotRef) -> None:
        """Kill what still runs and make the workspace exactly `ref`; /tmp and /dev/shm are emptied.

        Raises `SnapshotMismatch` if the tree hash differs afterwards.
        """

    @abstractmethod
    async def stop(self) -> None:
        """End the sandbox. Idempotent, and not undone by cancellation."""


class SandboxProvider(ABC):
    """A backend. Constructed with the folder of the content store.

    One with `runtimes` also takes the keyword `runtime`, the name of a container runtime such as `runsc`.
    """

    name: ClassVar[str]
    runtimes: ClassVar[bool] = False

    @abstractmethod
    async def probe(self) -> Capabilities:
        """Run a real canary and say what works and what is guaranteed."""

    @abstractmethod
    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Open a sandbox with an empty workspace. Raises `CapabilityError`, `SandboxUnavailable`."""

    async def build(self, spec: SandboxSpec) -> str:
        """Build what sandboxes of `spec` are made of and return its id. Raises `CapabilityError` without images."""
        raise CapabilityError(f"sandbox provider {self.name} has no images to build", remedy="use --provider docker")

    async def reap(self) -> Sequence[str]:
        """Remove what dead owners left behind, and nothing else; return what was removed."""
        return ()

    @abstractmethod
    async def aclose(self) -> None:
        """Stop all sandboxes of this provider."""
