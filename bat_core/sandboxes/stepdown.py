"""From root to a user of its own, then on to another program; run as a script, standard library only.

Root is exempt from the limit on processes, even in a user namespace, so each sandbox of a root parent gets a user of
its own. Such a user may not enter every folder above what it is to mount (an interpreter below a private home): in a
mount namespace of our own those folders are covered by empty ones that lead to the wanted folders and nothing else.
"""

from __future__ import annotations

# Imports cost more than all the work here, on the way to every sandbox: so no pathlib.
# ruff: noqa: PTH103, PTH116
import ctypes
import os
import stat
import sys

_NEW_MOUNTS = 0x20000
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000


def blocked_above(folder: str) -> str | None:
    """Return the topmost folder above `folder` (or itself) that others may not enter."""
    steps = folder.split("/")
    for count in range(1, len(steps) + 1):
        above = "/".join(steps[:count]) or "/"
        if not stat.S_IMODE(os.stat(above).st_mode) & 0o001:
            return above
    return None


def clear_the_way(folders: list[str]) -> None:
    """Make each of `folders` reachable for everybody, in a mount namespace that ends with this program."""
    barriers = {folder: above for folder in folders if (above := blocked_above(folder)) and above != folder}
    if not barriers:
        return
    library = ctypes.CDLL(None, use_errno=True)
    _check(library.unshare(_NEW_MOUNTS), "unshare")
    _mount(library, "none", "/", None, _REC | _PRIVATE)
    handles = {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in barriers}
    for above in sorted(set(barriers.values())):
        _mount(library, "none", above, "tmpfs", 0, b"mode=0755,size=1m")
    for folder, handle in handles.items():
        os.makedirs(folder, exist_ok=True)
        _mount(library, f"/proc/self/fd/{handle}", folder, None, _BIND | _REC)
        os.close(handle)


def _mount(library: ctypes.CDLL, source: str, target: str, kind: str | None, flags: int, data: bytes = b"") -> None:
    words = os.fsencode(source), os.fsencode(target), kind.encode() if kind else None
    _check(library.mount(*words, ctypes.c_ulong(flags), data or None), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def main() -> None:
    """Take a user's number, the number of folders, the folders, and a command line."""
    os.umask(0o022)
    user, count = int(sys.argv[1]), int(sys.argv[2])
    clear_the_way(sys.argv[3 : 3 + count])
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    command = sys.argv[3 + count :]
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
