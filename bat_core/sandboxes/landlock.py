"""Provider `landlock`: a degraded fallback where neither Docker nor user namespaces can be had.

Commands run in a temporary folder of the host. They can read the system's programs and the toolbelt, write that folder,
and open no socket. They share the host's process table, and nothing limits the disk or the memory of all together.
"""

from __future__ import annotations

import base64
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from bat_core.errors import SandboxUnavailable
from bat_core.model.sandbox import Guarantee, SandboxSpec
from bat_core.sandboxes import seccomp
from bat_core.sandboxes.bundle import agent_program
from bat_core.sandboxes.descent import new_user, stepping_down
from bat_core.sandboxes.hostfolder import HostFolder, import_paths, reap, toolbelt_of
from bat_core.sandboxes.hostpython import host_python
from bat_core.sandboxes.inside.confine import landlock_version
from bat_core.sandboxes.lifeline import Lifeline
from bat_core.sandboxes.probed import ProbedProvider
from bat_core.sandboxes.provider import Launch

_PREFIX = "bat-landlock-"
_SCOPES = 6  # the first version that keeps signals inside
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc/alternatives", "/etc/ld.so.cache")
_ALWAYS = frozenset({Guarantee.NET, Guarantee.ENV, Guarantee.MEM_PROC, Guarantee.SYSCALLS, Guarantee.NO_SURVIVORS})
# Landlock doesn't keep a process from changing the mode of its user's other files, and a limit on processes counts
# all of that user's: both need a user of the sandbox's own, which only root hands out.
_WITH_OWN_USER = frozenset({Guarantee.FS, Guarantee.PIDS})


class LandlockProvider(ProbedProvider):
    """Confined processes in a temporary folder.

    Promised at most: `env`, `mem_proc`, `net`, `no_survivors`, `syscalls`, and from a root parent `fs` and `pids`.

    Args:
        store: Folder of the content store.
    """

    name: ClassVar[str] = "landlock"
    remedy: ClassVar[str] = "use Docker or bubblewrap, or a kernel from 6.12 on that was built with Landlock"

    @property
    def promised(self) -> frozenset[Guarantee]:
        """What this kernel, and whether we are root, allow to promise."""
        if landlock_version() < _SCOPES or not seccomp.supported():
            return frozenset({Guarantee.ENV, Guarantee.MEM_PROC})
        return _ALWAYS | (_WITH_OWN_USER if os.geteuid() == 0 else frozenset())

    async def reap(self) -> Sequence[str]:
        """Remove the folders of processes that are no more, and nothing else."""
        return list(reap(_PREFIX))

    async def launch(self, spec: SandboxSpec) -> Launch:
        """Start an agent in a temporary folder that goes with it."""
        if landlock_version() < 1:
            raise SandboxUnavailable("this kernel has no Landlock", remedy=self.remedy)
        user = new_user()
        with contextlib.ExitStack() as undo:
            folder = HostFolder.make(_PREFIX)
            undo.callback(folder.remove)
            folder.top.chmod(0o755)
            for place in (folder.workspace, folder.scratch):
                os.chown(place, user, -1)
            env = folder.environment(spec, f"{sys.prefix}/bin:/usr/bin:/bin")
            lifeline = Lifeline(_command(spec, user), env, self.max_body(spec), gentle=True, finish=folder.remove)
            undo.pop_all()
        return Launch(lifeline, self._told(spec, env, folder), folder.mapped(spec))

    def _told(self, spec: SandboxSpec, env: dict[str, str], folder: HostFolder) -> dict[str, object]:
        config = self.config(
            spec,
            workspace=str(folder.workspace),
            scratch=[str(folder.scratch)],
            env=env,
            paths=import_paths(spec),
            namespace=False,
        )
        config["limits"]["pids"] = spec.limits.pids if os.geteuid() == 0 else 0
        program = seccomp.program(sockets=False) if seccomp.supported() else b""
        config["confine"] = {
            "read": [*_SYSTEM, *_readable(spec)],
            "write": [str(folder.workspace), str(folder.scratch)],
            "program": base64.b64encode(program).decode(),
        }
        return config


def _command(spec: SandboxSpec, user: int) -> list[str]:
    """Return the agent's command line; a root parent steps down first."""
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    argv = [str(program), "-s", "-S", "-B", "-X", "utf8", "-c", agent_program(compiled=True)]
    if os.geteuid() != 0:
        return argv
    return stepping_down(argv, user, _readable(spec))


def _readable(spec: SandboxSpec) -> list[str]:
    """Return the folders of Python and the toolbelt."""
    folders = sorted({source for source, _ in host_python().folders} | {sys.prefix})
    return [*folders, toolbelt_of(spec)] if spec.toolbelt else folders
