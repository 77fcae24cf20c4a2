"""Provider `unsafe-process`: the same agent without any isolation, for machines that allow nothing better.

Commands run as the user who runs us and can reach all that this user can. It promises nothing, so a spec's
`require` refuses it until it is emptied, and `auto` never takes it: a config has to spell it out.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from bat_core.errors import SandboxError
from bat_core.model.sandbox import Capabilities, Guarantee, SandboxSpec
from bat_core.sandboxes.bundle import agent_program
from bat_core.sandboxes.hostpython import bare_environment, host_python
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
        removed = []
        for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
            owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
            if owner.isdigit() and not _lives(int(owner)) and folder.stat().st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(str(folder))
        return removed

    async def launch(self, spec: SandboxSpec) -> Launch:
        """Start an agent in a temporary folder that goes with it."""
        with contextlib.ExitStack() as undo:
            top = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")).resolve()
            undo.callback(shutil.rmtree, top, ignore_errors=True)
            workspace, scratch = top / "workspace", top / "tmp"
            workspace.mkdir()
            scratch.mkdir()
            env = _environment(spec, workspace, scratch)
            argv = [sys.executable, "-s", "-S", "-B", "-X", "utf8", "-c", agent_program(compiled=True)]
            finish = functools.partial(shutil.rmtree, top, ignore_errors=True)
            lifeline = Lifeline(argv, env, self.max_body(spec), gentle=True, finish=finish)
            undo.pop_all()
        belt = os.path.realpath(spec.toolbelt) if spec.toolbelt else None
        config = self.config(
            spec,
            workspace=str(workspace),
            scratch=[str(scratch)],
            env=env,
            paths=[*([belt] if belt else []), *_packages()],
            namespace=False,
        )

        def mapped(text: str) -> str:
            text = text.replace("/workspace", str(workspace))
            return text.replace("/toolbelt", belt) if belt else text

        return Launch(lifeline, config, mapped)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _environment(spec: SandboxSpec, workspace: Path, scratch: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    if not spec.toolbelt:
        return bare_environment(path, str(workspace)) | {"TMPDIR": str(scratch)} | spec.env
    belt = os.path.realpath(spec.toolbelt)
    env = bare_environment(f"{belt}/bin:{path}", str(workspace))
    return env | {"TMPDIR": str(scratch), "PYTHONPATH": belt} | spec.env


def _packages() -> list[str]:
    return [source for source, inside in host_python().folders if inside in host_python().site]
