"""Re-execution: the agent's own entry point, run again in a clean sandbox, on given and on unseen inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bat_core import registry
from bat_core.errors import OutputLimit, SandboxError
from bat_core.model.sandbox import SandboxSpec
from bat_core.sandboxes.choose import choose
from bat_core.sandboxes.pool import SandboxPool
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.verify.toolbox.degenerate import memorised
from bat_core.verify.toolbox.finding import Finding

Same = Callable[[bytes, bytes], bool]


@dataclass(frozen=True)
class Ran:
    """What a run in the clean room left.

    Attributes:
        ok: Whether it ended with exit code 0; None where we failed to run it.
        files: Files afterwards.
        stdout: What it printed.
        reason: Why it was not ok.
    """

    ok: bool | None
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdout: str = ""
    reason: str = ""


class CleanRoom:
    """Opens fresh sandboxes for verifiers. What an agent wrote runs here and nowhere else.

    Args:
        spec: What the domain asks of a sandbox.
        provider: Backend, or `auto`.
        seconds: Limit of one run.
    """

    def __init__(self, spec: SandboxSpec, provider: str = "auto", seconds: float = 20.0) -> None:
        self._spec, self._name, self._seconds = spec, provider, seconds
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._pool: SandboxPool | None = None
        self._provider: object = None

    async def run(self, files: Mapping[str, bytes], command: Sequence[str], stdin: bytes = b"") -> Ran:
        """Run `command` over `files` in a fresh workspace. A sandbox that fails us is no result."""
        try:
            pool, store = await self._open()
            sandbox = await pool.acquire(store.put_files(files))
            try:
                done = await sandbox.exec(command, stdin=stdin, timeout=self._seconds)
                left = await sandbox.collect()
            finally:
                await pool.release(sandbox)
        except OutputLimit as error:
            return Ran(False, reason=str(error))
        except SandboxError as error:
            return Ran(None, reason=str(error))
        ok = done.status == "exited" and done.rc == 0
        why = "" if ok else f"{done.status}, exit code {done.rc}"
        return Ran(ok, left, done.stdout.decode(errors="replace"), why)

    async def _open(self) -> tuple[SandboxPool, SnapshotStore]:
        if self._pool is None or self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="bat-clean-")
            store = Path(self._folder.name)
            names = [f.qualified for f in registry.installed("sandboxes")] if self._name == "auto" else [self._name]
            found = {name.rpartition("/")[2]: registry.load("sandboxes", name) for name in names}
            provider = await choose(self._name, found, store, self._spec)
            self._provider, self._pool = provider, SandboxPool(provider, self._spec, 2)
        return self._pool, SnapshotStore(Path(self._folder.name))

    async def aclose(self) -> None:
        """Stop the sandboxes. Idempotent."""
        pool, provider, folder = self._pool, self._provider, self._folder
        self._pool = self._provider = self._folder = None
        if pool is not None:
            await pool.aclose()
        if provider is not None:
            await provider.aclose()  # type: ignore[attr-defined]
        if folder is not None:
            folder.cleanup()


@dataclass(frozen=True)
class Case:
    """One input and what should come of it.

    Attributes:
        inputs: Files that the entry point finds.
        command: How it is called for them.
        output: Path of its output.
        wanted: The right output.
    """

    inputs: Mapping[str, bytes]
    command: Sequence[str]
    output: str
    wanted: bytes


async def reproduces(room: CleanRoom, files: Mapping[str, bytes], case: Case, same: Same) -> Finding:
    """Return whether the entry point, run again, gives the output that the rollout handed in.

    Args:
        room: Where it runs.
        files: The rollout's files. Its output is taken away first: what is there afterwards was made.
        case: Inputs and command; `wanted` is not used.
        same: Whether two outputs say the same.
    """
    told = files.get(case.output)
    if told is None:
        return Finding(False, f"{case.output} is missing")
    ran = await room.run(_ready(files, case), case.command)
    if not ran.ok:
        return Finding(None if ran.ok is None else False, f"running it again: {ran.reason}", claimed=True, evidence=0.0)
    made = ran.files.get(case.output)
    fine = made is not None and same(made, told)
    why = "" if fine else f"running it again gives another {case.output}"
    return Finding(fine, why, claimed=True, evidence=1.0 if fine else 0.0)


async def generalises(
    room: CleanRoom, files: Mapping[str, bytes], given: Sequence[Case], unseen: Sequence[Case], same: Same
) -> Finding:
    """Return whether the entry point is right on inputs that the agent has never seen, as it is on those it has."""
    shares: list[list[bool]] = []
    for cases in (given, unseen):
        rights = []
        for case in cases:
            ran = await room.run(_ready(files, case), case.command)
            if ran.ok is None:
                return Finding(None, f"running it: {ran.reason}")
            made = ran.files.get(case.output)
            rights.append(made is not None and same(made, case.wanted))
        shares.append(rights)
    if memorised(shares[0], shares[1]):
        return Finding(False, "right on the given inputs, wrong on unseen ones", claimed=True, evidence=0.0)
    return Finding(all(shares[1]) and bool(shares[1]), f"right on {sum(shares[1])} of {len(shares[1])} unseen inputs")


def _ready(files: Mapping[str, bytes], case: Case) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path != case.output} | dict(case.inputs)
