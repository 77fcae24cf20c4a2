"""The content store of sealed workspaces: one tar per tree hash, written once, verified when read."""

from __future__ import annotations

import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from bat_core.errors import SnapshotMismatch
from bat_core.model.sandbox import SnapshotRef
from bat_core.sandboxes.tarball import BadTar, decode, encode
from bat_core.sandboxes.tree import Node, hash_of_nodes

_ROOT = re.compile(r"sha256:[0-9a-f]{64}")
_CACHE_BYTES = 64 << 20
_Signature = tuple[int, int, int]


class _Loaded(NamedTuple):
    signature: _Signature
    tar: bytes
    nodes: dict[str, Node]


class SnapshotStore:
    """Sealed workspaces in a folder, keyed by tree hash. Safe for many processes at once.

    Args:
        folder: Where the blobs live; made when the first one is put.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cache: OrderedDict[str, _Loaded] = OrderedDict()
        self._held = 0

    def put_tar(self, data: bytes | bytearray) -> SnapshotRef:
        """Store the workspace that `data` holds; its hash is computed here, whatever the sender claims."""
        try:
            return self._put(decode(data))
        except BadTar as error:
            raise SnapshotMismatch(
                f"a sandbox sealed something that is no workspace: {error}", remedy="discard that sandbox"
            ) from error

    def put_files(self, files: Mapping[str, bytes], *, executable: Collection[str] = ()) -> SnapshotRef:
        """Store a workspace made of `files` (path to content) without any sandbox."""
        nodes = {path: Node("file", bytes(data), path in executable) for path, data in files.items()}
        try:
            return self._put(decode(b"".join(encode(nodes))))  # the codec checks the paths and adds the folders
        except BadTar as error:
            raise ValueError(f"these files can't be a workspace: {error}") from error

    def tar(self, ref: SnapshotRef) -> bytes:
        """Return the verified tar of `ref`. Raises `SnapshotMismatch` if it is missing or damaged."""
        return self._load(ref).tar

    def files(self, ref: SnapshotRef) -> dict[str, bytes]:
        """Return the regular files of `ref`: path to content. Links are not followed."""
        return {path: node.data for path, node in self._load(ref).nodes.items() if node.kind == "file"}

    def odd(self, ref: SnapshotRef) -> tuple[str, ...]:
        """Return the paths that are neither files nor folders: links, fifos, sockets."""
        return tuple(sorted(path for path, node in self._load(ref).nodes.items() if node.kind in ("link", "other")))

    def has(self, ref: SnapshotRef) -> bool:
        """Whether a blob for `ref` lies in the store; `tar` says whether it is sound."""
        return self.path(ref.root).is_file()

    def path(self, root: str) -> Path:
        """Return where the blob of tree hash `root` lies."""
        if not _ROOT.fullmatch(root):
            raise SnapshotMismatch(f"{root[:80]!r} is no tree hash", remedy="use the root of a SnapshotRef")
        digest = root.removeprefix("sha256:")
        return self.folder / digest[:2] / f"{digest}.tar"

    def _put(self, nodes: dict[str, Node]) -> SnapshotRef:
        root = hash_of_nodes(nodes)
        path = self.path(root)
        tar = b"".join(encode(nodes))
        if not (path.is_file() and path.stat().st_size == len(tar) and path.read_bytes() == tar):
            _write(path, tar)
        self._remember(root, _Loaded(_signature(path), tar, nodes))
        files = [node for node in nodes.values() if node.kind == "file"]
        return SnapshotRef(root=root, bytes=sum(len(node.data) for node in files), files=len(files))

    def _load(self, ref: SnapshotRef) -> _Loaded:
        path = self.path(ref.root)
        remedy = "restore that file from a copy, or rebuild the bank"
        try:
            signature = _signature(path)
            known = self._cache.get(ref.root)
            if known is not None and known.signature == signature:
                self._cache.move_to_end(ref.root)
                return known
            tar = path.read_bytes()
            nodes = decode(tar)
        except FileNotFoundError:
            raise SnapshotMismatch(f"snapshot {path} is missing", remedy=remedy) from None
        except BadTar as error:
            raise SnapshotMismatch(f"snapshot {path} is damaged ({error})", remedy=remedy) from error
        if hash_of_nodes(nodes) != ref.root:
            raise SnapshotMismatch(f"snapshot {path} is damaged (its content has another hash)", remedy=remedy)
        loaded = _Loaded(signature, tar, nodes)
        self._remember(ref.root, loaded)
        return loaded

    def _remember(self, root: str, loaded: _Loaded) -> None:
        known = self._cache.pop(root, None)
        self._held += len(loaded.tar) - (len(known.tar) if known else 0)
        self._cache[root] = loaded
        while self._held > _CACHE_BYTES:
            self._held -= len(self._cache.popitem(last=False)[1].tar)


def _signature(path: Path) -> _Signature:
    """Return what changes when the blob is touched, so that a damaged one doesn't hide behind the cache."""
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _write(path: Path, data: bytes) -> None:
    """Write `data` so that a reader sees all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)  # still there only if something failed
