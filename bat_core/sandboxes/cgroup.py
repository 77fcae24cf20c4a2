"""Control groups: hard limits on the memory and the number of all processes of a sandbox, where root may set them."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from bat_core.model.sandbox import Limits
from bat_core.sandboxes.ceiling import memory_ceiling
from bat_core.sandboxes.owner import this_process

_MOUNT = Path("/sys/fs/cgroup")
_KEEPERS = 4  # bubblewrap's own processes and the agent
_WAIT_S = 1.0


class ControlGroup:
    """One new group with limits. Version 1 has a folder a controller, version 2 one for all.

    Args:
        limits: What the sandbox may use. Raises `OSError` where groups can't be made or limited.
    """

    def __init__(self, limits: Limits) -> None:
        owner = this_process()
        name = f"bat-{owner.pid}-{owner.start}-{secrets.token_hex(4)}"
        self.folders: list[Path] = []
        with contextlib.ExitStack() as undo:
            undo.callback(self.remove)
            for parent in _parents():
                (parent / name).mkdir()
                self.folders.append(parent / name)
            self._limit(memory_ceiling(limits), limits.pids + _KEEPERS)
            undo.pop_all()

    @property
    def doors(self) -> list[str]:
        """The files through which a process joins."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def oom_kills(self) -> int:
        """Return how many of its processes were killed for memory."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError, ValueError):
                    told = dict(line.split() for line in (folder / name).read_text(encoding="ascii").splitlines())
                    return int(told.get("oom_kill", 0))
        return 0

    def remove(self) -> None:
        """Remove it once its processes are gone; one that can't be is left for `reap`."""
        until = time.monotonic() + _WAIT_S
        for folder in self.folders:
            while folder.exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > until:
                    break
                time.sleep(0.005)

    def _limit(self, memory: int, pids: int) -> None:
        wanted = {"memory.max": memory, "memory.swap.max": 0, "memory.limit_in_bytes": memory, "pids.max": pids}
        held = set()
        for folder in self.folders:
            for name, value in wanted.items():
                if (folder / name).exists():
                    (folder / name).write_text(str(value), encoding="ascii")
                    held |= {name} if int((folder / name).read_text(encoding="ascii")) <= value else set()
        if not held & {"memory.max", "memory.limit_in_bytes"} or "pids.max" not in held:
            raise OSError("the kernel did not take the limits")


@functools.cache
def available() -> bool:
    """Whether this process may make groups with limits; tried with a real one."""
    if os.geteuid() != 0:
        return False
    try:
        ControlGroup(Limits()).remove()
    except (OSError, ValueError):
        return False
    return True


def reap() -> Iterator[str]:
    """Remove the empty groups of owners that are no more; yield their paths."""
    ours = this_process()
    with contextlib.suppress(OSError):
        for parent in _parents():
            for folder in parent.glob("bat-*-*-*"):
                parts = folder.name.split("-")
                if parts[1].isdigit() and ours._replace(pid=int(parts[1]), start=parts[2]).dead:
                    with contextlib.suppress(OSError):
                        folder.rmdir()
                        yield str(folder)


def _parents() -> list[Path]:
    """Return the folders in which groups are made, below our own groups where these can have any below them."""
    own: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    if (_MOUNT / "cgroup.controllers").exists():
        return [_unified(own.get("", "/"))]
    folders = []
    for controller in ("memory", "pids"):
        below = _MOUNT / controller / own[controller].strip("/") if controller in own else _MOUNT / controller
        folders.append(below if below.is_dir() else _MOUNT / controller)
    return folders


def _unified(own: str) -> Path:
    """Return where version 2 lets groups have limits: beside ours, as one with processes can't limit those below."""
    parent = _MOUNT / own.strip("/").rpartition("/")[0]
    control = parent / "cgroup.subtree_control"
    if not {"memory", "pids"} <= set(control.read_text(encoding="ascii").split()):
        control.write_text("+memory +pids", encoding="ascii")
    return parent
