"""Provider `unsafe-process`: the same agent without any isolation, for machines that allow nothing better.

Commands run as the user who runs us and can reach all that this user can. It promises nothing, so a spec's
`require` refuses it until it is emptied, and `auto` never takes it: a config has to spell it out.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from bat_core.errors import SandboxError
from bat_core.model.sandbox import Capabilities, Guarantee, SandboxSpec
from bat_core.sandboxes.bundle import agent_program
from bat_core.sandboxes.hostfolder import HostFolder, import_paths, reap
from bat_core.sandboxes.lifeline import Lifeline
from bat_core.sandboxes.provider import AgentProvider, Launch

_PREFIX = "bat-unsafe-"


class UnsafeProcessProvider(AgentProvider):
    """Plain child processes in a temporary folder.

    The text `/workspace` and `/toolbelt` in arguments and in Python source is rewritten to where those lie.

    Args:
        store: Folder of the content store.
    """

    name: ClassVar[str] = "unsafe-process"

    @property
    def guarantees(self) -> frozenset[Guarantee]:
        """Nothing."""
        return frozenset()

    async def probe(self) -> Capabilities:
        """Run one command; there is nothing to guarantee."""
        try:
            sandbox = await self.open(SandboxSpec(require=frozenset()))
        except SandboxError as error:
            return Capabilities(provider=self.name, works=False, detail=str(error))
        try:
            answer = await sandbox.exec([sys.executable, "-c", "pass"], timeout=20)
        finally:
            await sandbox.stop()
        works = answer.status == "exited" and answer.rc == 0
        return Capabilities(provider=self.name, works=works, detail="no isolation at all")

    async def reap(self) -> Sequence[str]:
        """Remove the folders of processes that are no more, and nothing else."""
        return list(reap(_PREFIX))

    async def launch(self, spec: SandboxSpec) -> Launch:
        """Start an agent in a temporary folder that goes with it."""
        with contextlib.ExitStack() as undo:
            folder = HostFolder.make(_PREFIX)
            undo.callback(folder.remove)
            env = folder.environment(spec, f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin")
            argv = [sys.executable, "-s", "-S", "-B", "-X", "utf8", "-c", agent_program(compiled=True)]
            lifeline = Lifeline(argv, env, self.max_body(spec), gentle=True, finish=folder.remove)
            undo.pop_all()
        config = self.config(
            spec,
            workspace=str(folder.workspace),
            scratch=[str(folder.scratch)],
            env=env,
            paths=import_paths(spec),
            namespace=False,
        )
        return Launch(lifeline, config, folder.mapped(spec))
