"""Provider `landlock`: a degraded fallback where neither Docker nor user namespaces can be had.

Commands run in a temporary folder of the host. They can read the system's programs and the toolbelt, write that folder,
and open no socket. They share the host's process table, and nothing limits the disk or the memory of all together.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from bat_core.errors import SandboxUnavailable
from bat_core.model.sandbox import Capabilities, Guarantee, SandboxSpec
from bat_core.sandboxes import seccomp
from bat_core.sandboxes.bundle import agent_program
from bat_core.sandboxes.canary import examine
from bat_core.sandboxes.descent import new_user, stepping_down
from bat_core.sandboxes.hostpython import bare_environment, host_python
from bat_core.sandboxes.inside.confine import landlock_version
from bat_core.sandboxes.lifeline import Lifeline
from bat_core.sandboxes.owner import parse, this_process
from bat_core.sandboxes.provider import AgentProvider, Launch

REMEDY = "use Docker or bubblewrap, or a kernel from 6.12 on that was built with Landlock"
_PREFIX = "bat-landlock-"
_SCOPES = 6  # the first version that keeps signals inside
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc/alternatives", "/etc/ld.so.cache")
_ALWAYS = frozenset({Guarantee.NET, Guarantee.ENV, Guarantee.MEM_PROC, Guarantee.SYSCALLS, Guarantee.NO_SURVIVORS})
# Landlock doesn't keep a process from changing the mode of its user's other files, and a limit on processes counts
# all of that user's: both need a user of the sandbox's own, which only root hands out.
_WITH_OWN_USER = frozenset({Guarantee.FS, Guarantee.PIDS})


class LandlockProvider(AgentProvider):
    """Confined processes in a temporary folder.

    Promised at most: `env`, `mem_proc`, `net`, `no_survivors`, `syscalls`, and from a root parent `fs` and `pids`.

    Args:
        store: Folder of the content store.
    """

    name: ClassVar[str] = "landlock"

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        self._found: Capabilities | None = None

    @property
    def guarantees(self) -> frozenset[Guarantee]:
        """What a sandbox promises here; once probed, only what the canary found to hold."""
        if self._found is not None:
            return self._found.guarantees
        if landlock_version() < _SCOPES or not seccomp.supported():
            return frozenset({Guarantee.ENV, Guarantee.MEM_PROC})
        return _ALWAYS | (_WITH_OWN_USER if os.geteuid() == 0 else frozenset())

    async def probe(self) -> Capabilities:
        """Run a real sandbox and try what it must not allow; the answer is remembered."""
        if self._found is None:
            self._found = await examine(self, REMEDY)
        return self._found

    async def reap(self) -> Sequence[str]:
        """Remove the folders of processes that are no more, and nothing else."""
        removed = []
        for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            owner = parse(folder.name.removeprefix(_PREFIX).rpartition("_")[0].replace("+", "/"))
            if owner is not None and owner.dead:
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(str(folder))
        return removed

    async def launch(self, spec: SandboxSpec) -> Launch:
        """Start an agent in a temporary folder that goes with it."""
        if landlock_version() < 1:
            raise SandboxUnavailable("this kernel has no Landlock", remedy=REMEDY)
        user = new_user()
        with contextlib.ExitStack() as undo:
            top = _folder()
            undo.callback(shutil.rmtree, top, ignore_errors=True)
            places = [top / "workspace", top / "tmp"]
            for place in places:
                place.mkdir(mode=0o700)
                os.chown(place, user, -1)
            env = _environment(spec, *places)
            finish = functools.partial(shutil.rmtree, top, ignore_errors=True)
            lifeline = Lifeline(_command(spec, user), env, self.max_body(spec), gentle=True, finish=finish)
            undo.pop_all()
        return Launch(lifeline, self._told(spec, env, places), _mapping(spec, places[0]))

    def _told(self, spec: SandboxSpec, env: dict[str, str], places: Sequence[Path]) -> dict[str, object]:
        belt = [os.path.realpath(spec.toolbelt)] if spec.toolbelt else []
        config = self.config(
            spec,
            workspace=str(places[0]),
            scratch=[str(place) for place in places[1:]],
            env=env,
            paths=[*belt, *_packages()],
            namespace=False,
        )
        config["limits"]["pids"] = spec.limits.pids if os.geteuid() == 0 else 0
        program = seccomp.program(sockets=False) if seccomp.supported() else b""
        config["confine"] = {
            "read": [*_SYSTEM, *_python_folders(), *belt],
            "write": [str(place) for place in places],
            "program": base64.b64encode(program).decode(),
        }
        return config


def _folder() -> Path:
    owner = str(this_process()).replace("/", "+")
    top = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{owner}_")).resolve()
    top.chmod(0o755)
    return top


def _command(spec: SandboxSpec, user: int) -> list[str]:
    """Return the agent's command line; a root parent steps down first."""
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    argv = [str(program), "-s", "-S", "-B", "-X", "utf8", "-c", agent_program(compiled=True)]
    if os.geteuid() != 0:
        return argv
    folders = [*_python_folders(), *([os.path.realpath(spec.toolbelt)] if spec.toolbelt else [])]
    return stepping_down(argv, user, folders)


def _python_folders() -> list[str]:
    python = host_python()
    return sorted({source for source, _ in python.folders} | {sys.prefix})


def _packages() -> list[str]:
    return [source for source, inside in host_python().folders if inside in host_python().site]


def _environment(spec: SandboxSpec, workspace: Path, scratch: Path) -> dict[str, str]:
    path, own = f"{sys.prefix}/bin:/usr/bin:/bin", {"TMPDIR": str(scratch)}
    if not spec.toolbelt:
        return bare_environment(path, str(workspace)) | own | spec.env
    belt = os.path.realpath(spec.toolbelt)
    return bare_environment(f"{belt}/bin:{path}", str(workspace)) | own | {"PYTHONPATH": belt} | spec.env


def _mapping(spec: SandboxSpec, workspace: Path) -> functools.partial[str]:
    pairs = [("/workspace", str(workspace))]
    pairs += [("/toolbelt", os.path.realpath(spec.toolbelt))] if spec.toolbelt else []
    return functools.partial(_mapped, pairs)


def _mapped(pairs: Sequence[tuple[str, str]], text: str) -> str:
    for written, meant in pairs:
        text = text.replace(written, meant)
    return text
