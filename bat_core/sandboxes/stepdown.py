"""From root to a user of its own, then on to another program; run as a script, standard library only.

Root is exempt from the limit on processes, even in a user namespace, so each sandbox of a root parent gets a user of
its own. Such a user may not enter every folder above what it is to mount (an interpreter below a private home): in a
mount namespace of our own those folders are covered by empty ones that lead to the wanted folders and nothing else.
In the same namespace root can make file systems with a limit on their files, which bubblewrap itself can't.
"""

from __future__ import annotations

# Imports cost more than all the work here, on the way to every sandbox: so no pathlib.
# ruff: noqa: PTH102, PTH103, PTH116
import ctypes
import os
import stat
import sys

_NEW_MOUNTS = 0x20000
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
_NOSUID, _NODEV = 2, 4


def blocked_above(folder: str) -> str | None:
    """Return the topmost folder above `folder` (or itself) that others may not enter."""
    steps = folder.split("/")
    for count in range(1, len(steps) + 1):
        above = "/".join(steps[:count]) or "/"
        if not stat.S_IMODE(os.stat(above).st_mode) & 0o001:
            return above
    return None


def clear_the_way(library: ctypes.CDLL, folders: list[str]) -> None:
    """Make each of `folders` reachable for everybody, in a mount namespace that ends with this program."""
    barriers = {folder: above for folder in folders if (above := blocked_above(folder)) and above != folder}
    if not barriers:
        return
    handles = {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in barriers}
    for above in sorted(set(barriers.values())):
        _mount(library, "none", above, "tmpfs", 0, b"mode=0755,size=1m")
    for folder, handle in handles.items():
        os.makedirs(folder, exist_ok=True)
        _mount(library, f"/proc/self/fd/{handle}", folder, None, _BIND | _REC)
        os.close(handle)


def make_places(library: ctypes.CDLL, room: str, user: int, places: list[str]) -> None:
    """Mount, below the folder `room`, a file system for each `name:bytes:files` of `places`, owned by `user`."""
    _mount(library, "none", room, "tmpfs", _NOSUID | _NODEV, b"mode=0755,size=64k")
    for place in places:
        name, size, files = place.split(":")
        os.mkdir(f"{room}/{name}")
        options = f"mode=0755,size={size},nr_inodes={files},uid={user},gid={user}"
        _mount(library, "none", f"{room}/{name}", "tmpfs", _NOSUID | _NODEV, options.encode())


def _mount(library: ctypes.CDLL, source: str, target: str, kind: str | None, flags: int, data: bytes = b"") -> None:
    words = os.fsencode(source), os.fsencode(target), kind.encode() if kind else None
    _check(library.mount(*words, ctypes.c_ulong(flags), data or None), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def main() -> None:
    """Take a user's number, then four lists, each after its length, then a command line.

    The lists: control groups to join, folders to clear the way to, a folder for file systems (one or none), these.
    """
    os.umask(0o022)
    words = iter(sys.argv[1:])
    user = int(next(words))
    groups, folders, room, places = ([next(words) for _ in range(int(next(words)))] for _ in range(4))
    command = list(words)
    for group in groups:
        handle = os.open(group, os.O_WRONLY)
        os.write(handle, b"0")
        os.close(handle)
    library = ctypes.CDLL(None, use_errno=True)
    _check(library.unshare(_NEW_MOUNTS), "unshare")
    _mount(library, "none", "/", None, _REC | _PRIVATE)
    clear_the_way(library, folders)
    if room:
        make_places(library, room[0], user, places)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
