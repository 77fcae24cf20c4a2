"""The workspace as the agent sees it: list, hash, read, write, wipe and fill. Links are never followed."""

# Handles and hot loops: pathlib knows no dir_fd and is slow.
# ruff: noqa: PTH101, PTH115, PTH208

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bat_core.sandboxes.tarball import MAX_DEPTH, MAX_PATH
from bat_core.sandboxes.tree import Kind, Leaf, Node, tree_hash

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_CHUNK = 1 << 20


class Oversize(Exception):
    """The workspace, or a file of it, is larger than allowed."""


class Found(NamedTuple):
    """One entry of the workspace on disk."""

    path: str
    kind: Kind
    executable: bool
    size: int


class Workspace:
    """A folder that only the agent touches while no command runs.

    Args:
        root: The folder.
        max_bytes: Apparent size at which the tree counts as oversize; sparse files can pretend anything.
        max_entries: Number of entries at which it does.
    """

    def __init__(self, root: str, max_bytes: int, max_entries: int) -> None:
        self.root = root
        self.max_bytes = max_bytes
        self.max_entries = max_entries

    def scan(self) -> list[Found]:
        """Return all entries sorted by path. Raises `Oversize`."""
        found: list[Found] = []
        total, folders = 0, [""]
        while folders:
            for entry in self._entries(folders.pop()):
                total += entry.size if entry.kind == "file" else 0
                found.append(entry)
                if len(found) > self.max_entries or total > self.max_bytes:
                    raise Oversize(f"the workspace holds over {self.max_entries} entries or {self.max_bytes} bytes")
                if entry.kind == "dir":
                    folders.append(entry.path + "/")
        return sorted(found, key=lambda entry: os.fsencode(entry.path))

    def _entries(self, folder: str) -> Iterator[Found]:
        if folder.count("/") > MAX_DEPTH or len(os.fsencode(folder)) > MAX_PATH - 256:
            raise Oversize("the workspace's folders are nested too deeply")
        for name in _names(f"{self.root}/{folder}"):
            status = os.lstat(f"{self.root}/{folder}{name}")
            kind = _kind(status.st_mode)
            yield Found(folder + name, kind, kind == "file" and bool(status.st_mode & 0o100), status.st_size)

    def hash(self) -> str:
        """Return the tree hash, from the contents themselves.

        There is no cache by size and times: on tmpfs a page that was mapped and read first can be written
        through the mapping without any time of the file moving, so such a cache would miss changes.
        """
        return tree_hash(self._leaf(entry) for entry in self.scan())

    def _leaf(self, entry: Found) -> Leaf:
        if entry.kind == "link":
            target = os.fsencode(os.readlink(f"{self.root}/{entry.path}"))
            return Leaf(entry.path, "link", False, len(target), hashlib.sha256(target).hexdigest())
        if entry.kind != "file":
            return Leaf(entry.path, entry.kind)
        handle = _open_file(f"{self.root}/{entry.path}")
        digest, size = hashlib.sha256(), 0
        try:
            while size < entry.size and (data := os.read(handle, min(entry.size - size, _CHUNK))):
                digest.update(data)
                size += len(data)
        finally:
            os.close(handle)
        return Leaf(entry.path, "file", entry.executable, size, digest.hexdigest())

    def load(self, kinds: tuple[Kind, ...], max_bytes: int) -> dict[str, Node]:
        """Return the tree in memory, limited to `kinds`. Raises `Oversize` before anything is read."""
        found = [entry for entry in self.scan() if entry.kind in kinds]
        total = sum(entry.size for entry in found if entry.kind == "file")
        if total > max_bytes:
            raise Oversize(f"the workspace's files have {total} bytes, the limit is {max_bytes}")
        return {entry.path: self._node(entry) for entry in found}

    def _node(self, entry: Found) -> Node:
        full = f"{self.root}/{entry.path}"
        if entry.kind == "link":
            return Node("link", os.fsencode(os.readlink(full)))
        if entry.kind != "file":
            return Node(entry.kind)
        with os.fdopen(_open_file(full), "rb") as stream:
            return Node("file", stream.read(entry.size), entry.executable)

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return a regular file. Raises `Oversize`, `OSError`."""
        folder = self._walk(path, make=False)
        try:
            handle = os.open(_parts(path)[-1], _READ, dir_fd=folder)
        except OSError as error:
            missing = errno.ENOENT if error.errno in (errno.ELOOP, errno.ENXIO) else error.errno
            raise OSError(missing, os.strerror(missing or 0), path) from None
        finally:
            os.close(folder)
        with os.fdopen(handle, "rb") as stream:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
            if status.st_size > max_bytes:
                raise Oversize(f"{path} has {status.st_size} bytes, the limit is {max_bytes}")
            return stream.read(max_bytes)

    def write(self, path: str, data: bytes | bytearray, executable: bool) -> None:
        """Write a regular file in place of whatever file or link has that name; folders appear as needed."""
        folder = self._walk(path, make=True)
        name = _parts(path)[-1]
        try:
            if _exists(name, folder):
                os.unlink(name, dir_fd=folder)
            _create(name, folder, data, executable)
        finally:
            os.close(folder)

    def _walk(self, path: str, *, make: bool) -> int:
        """Return a handle of the folder of `path`, one step at a time so that no link is followed."""
        parts = _parts(path)
        handle = os.open(self.root, _FOLDER)
        try:
            for part in parts[:-1]:
                if make and not _exists(part, handle):
                    os.mkdir(part, 0o755, dir_fd=handle)
                deeper = os.open(part, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = deeper
        except OSError as error:
            os.close(handle)
            code = errno.ENOTDIR if error.errno == errno.ELOOP else error.errno or errno.EIO
            raise OSError(code, os.strerror(code), path) from None
        return handle

    def fill(self, nodes: Mapping[str, Node]) -> None:
        """Make the tree `nodes` in the empty workspace; parents come before children."""
        handles = {"": os.open(self.root, _FOLDER)}
        try:
            for path in sorted(nodes, key=os.fsencode):
                parent, _, name = path.rpartition("/")
                if parent not in handles:
                    for known in [one for one in handles if one]:  # two open folders are enough
                        os.close(handles.pop(known))
                    handles[parent] = self._walk(path, make=False)
                _make(name, handles[parent], nodes[path])
        finally:
            for handle in handles.values():
                os.close(handle)


def _parts(path: str) -> list[str]:
    """Return the steps of a path of the workspace. Raises `FileNotFoundError` for one that leads elsewhere."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or path.startswith("/") or ".." in parts or not _spellable(path):
        raise FileNotFoundError(errno.ENOENT, "not a path of the workspace", path)
    return parts


def _spellable(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def wipe(root: str) -> None:
    """Empty the folder `root`; deep nests and unreadable folders don't stop it.

    A folder that isn't empty hands its own folders up to `root`, so nothing recurses.
    """
    top, moved = os.open(root, _FOLDER), 0
    try:
        while names := os.listdir(top):
            for name in names:
                moved = _drop(top, name, moved)
    finally:
        os.close(top)


def _drop(top: int, name: str, moved: int) -> int:
    """Remove one entry of `top`; return the counter for the names of folders handed up."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=top).st_mode):
        os.unlink(name, dir_fd=top)
        return moved
    os.chmod(name, 0o700, dir_fd=top)
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for child in os.listdir(folder):
            if stat.S_ISDIR(os.lstat(child, dir_fd=folder).st_mode):
                os.chmod(child, 0o700, dir_fd=folder)  # a folder moves only if it may be written
                while _exists(f".wipe-{moved}", top):
                    moved += 1
                os.rename(child, f".wipe-{moved}", src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(child, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return moved


def _make(name: str, folder: int, node: Node) -> None:
    if node.kind == "dir":
        os.mkdir(name, 0o755, dir_fd=folder)
    elif node.kind == "link":
        os.symlink(node.data, name, dir_fd=folder)
    elif node.kind == "other":
        os.mkfifo(name, 0o644, dir_fd=folder)
    else:
        _create(name, folder, node.data, node.executable)


def _create(name: str, folder: int, data: bytes | bytearray, executable: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o755 if executable else 0o644, dir_fd=folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def _exists(name: str, folder: int) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"


def _open_file(path: str) -> int:
    try:
        return os.open(path, _READ)
    except PermissionError:
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) | 0o600)
        return os.open(path, _READ)


def _names(folder: str) -> list[str]:
    """Return the names in a folder, even if a command took its own permissions away."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        os.chmod(folder, 0o755)
    return os.listdir(folder)
