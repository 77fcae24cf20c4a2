"""What providers with an agent share: refusing, opening, undoing a half-opened one, and closing all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from bat_core.errors import CapabilityError, SandboxUnavailable
from bat_core.hooks.sandbox import Sandbox, SandboxProvider
from bat_core.model.sandbox import Guarantee, SandboxSpec
from bat_core.sandboxes.lifeline import Line
from bat_core.sandboxes.session import AgentSandbox
from bat_core.sandboxes.snapshots import SnapshotStore


class Launch(NamedTuple):
    """A started agent, its configuration, and how paths are written for it."""

    lifeline: Line
    config: dict[str, Any]
    mapped: Callable[[str], str] | None = None


class AgentProvider(SandboxProvider):
    """A backend whose sandboxes are served by the agent.

    Args:
        store: Folder of the content store.
    """

    limits_cpus: ClassVar[bool] = False

    def __init__(self, store: Path) -> None:
        self.store = SnapshotStore(store)
        self._live: set[AgentSandbox] = set()

    @property
    @abstractmethod
    def guarantees(self) -> frozenset[Guarantee]:
        """What a sandbox of this provider promises on this machine."""

    @abstractmethod
    async def launch(self, spec: SandboxSpec) -> Launch:
        """Start what runs one sandbox, in the event loop's own thread; undone when it is cancelled."""

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Open a sandbox with an empty workspace."""
        lacking = spec.require - self.guarantees
        if lacking:
            raise CapabilityError(
                f"sandbox provider {self.name} can't guarantee {', '.join(sorted(lacking))}",
                remedy="choose another sandbox.provider, or require less",
            )
        if spec.limits.cpus and not self.limits_cpus:
            raise CapabilityError(
                f"sandbox provider {self.name} can't limit processors",
                remedy="leave SandboxSpec.limits.cpus alone, or choose sandbox.provider=docker",
            )
        try:
            launch = await self.launch(spec)
        except OSError as error:
            raise SandboxUnavailable(f"sandbox provider {self.name} can't start a process: {error}") from error
        sandbox = AgentSandbox(self.name, spec, self.guarantees, launch.lifeline, self.store, launch.mapped)
        self._live = {one for one in self._live if one.alive} | {sandbox}
        started = False
        try:
            await sandbox.start(launch.config)
            started = True
        finally:
            if not started:
                await sandbox.stop()
        return sandbox

    async def aclose(self) -> None:
        """Stop all sandboxes of this provider."""
        for sandbox in list(self._live):
            await sandbox.stop()
        self._live.clear()

    @staticmethod
    def max_body(spec: SandboxSpec) -> int:
        """Return the longest answer that an honest agent gives: a whole workspace as tar."""
        limits = spec.limits
        return limits.disk + limits.inodes * 8192 + 2 * limits.output + (1 << 20)

    @staticmethod
    def config(
        spec: SandboxSpec,
        *,
        workspace: str,
        scratch: Sequence[str],
        env: Mapping[str, str],
        paths: Sequence[str],
        namespace: bool,
        own_user: bool = True,
    ) -> dict[str, Any]:
        """Return the agent's first frame.

        Args:
            spec: What was asked for.
            workspace: Where the workspace lies, as the agent sees it.
            scratch: Other folders that a reset empties.
            env: Environment of every command.
            paths: Folders where modules are found.
            namespace: Whether the agent is the first process of a namespace.
            own_user: Whether nobody else's processes count against the agent's user.
        """
        return {
            "workspace": workspace,
            "scratch": list(scratch),
            "env": dict(env),
            "paths": list(paths),
            "preload": list(spec.preload),
            "namespace": namespace,
            "limits": spec.limits.model_dump() | ({} if namespace and own_user else {"pids": 0}),
        }
