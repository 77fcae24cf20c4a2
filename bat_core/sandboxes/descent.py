"""The command line by which a root parent steps down to a user of the sandbox's own; see `stepdown`."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bat_core.sandboxes import stepdown

_FIRST_UID = 0x6000_0000
_ROOMS = ("/mnt", "/media", "/srv", "/opt", "/home")


class Place(NamedTuple):
    """A file system of the sandbox's own."""

    name: str
    size: int
    files: int


def new_user() -> int:
    """Return a user that nobody else has: one of a sandbox's own under root, else the present one."""
    return _FIRST_UID + secrets.randbelow(1 << 24) if os.geteuid() == 0 else os.geteuid()


def room_beside(folders: Sequence[str]) -> str | None:
    """Return a folder of the host that can be covered, as none of `folders` lies below it."""
    for room in _ROOMS:
        usable = Path(room).is_dir() and not Path(room).is_symlink()
        if usable and not any(folder == room or folder.startswith(f"{room}/") for folder in folders):
            return room
    return None


def stepping_down(
    argv: Sequence[str],
    user: int,
    folders: Sequence[str],
    *,
    groups: Sequence[str] = (),
    room: str | None = None,
    places: Sequence[Place] = (),
) -> list[str]:
    """Return a command line that runs `argv` as `user`.

    Args:
        argv: The command line.
        user: Its user.
        folders: What that user must be able to reach.
        groups: Files through which control groups are joined.
        room: Folder below which `places` are mounted.
        places: File systems to mount there.
    """
    lists = [groups, sorted(set(folders)), [room] if room else [], [f"{p.name}:{p.size}:{p.files}" for p in places]]
    words = [word for one in lists for word in (str(len(one)), *one)]
    return [sys.executable, "-I", "-S", stepdown.__file__, str(user), *words, *argv]
