"""What a workspace is, reduced to one hash: paths, kinds, the executable bit and contents.

Standard library only: the host and the agent inside a sandbox run this same code, so that the host can
recompute what a sandbox claims. Times, owners, other mode bits and order don't enter the hash.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Kind = Literal["file", "dir", "link", "other"]


class Node(NamedTuple):
    """One path of a tree in memory; `data` is a file's content or a link's target."""

    kind: Kind
    data: bytes = b""
    executable: bool = False


class Leaf(NamedTuple):
    """One path of a tree as the hash sees it."""

    path: str
    kind: Kind
    executable: bool = False
    size: int = 0
    digest: str = "-"


def leaf_of(path: str, node: Node) -> Leaf:
    """Return what the hash needs of `node`; folders, fifos and sockets count by their kind alone."""
    if node.kind in ("dir", "other"):
        return Leaf(path, node.kind)
    executable = node.kind == "file" and node.executable
    return Leaf(path, node.kind, executable, len(node.data), hashlib.sha256(node.data).hexdigest())


def tree_hash(leaves: Iterable[Leaf]) -> str:
    """Return `sha256:<hex>` of the leaves sorted by the bytes of their paths; a path ends with NUL."""
    lines = sorted(
        (os.fsencode(leaf.path), f"{leaf.kind} {int(leaf.executable)} {leaf.size} {leaf.digest} ".encode())
        for leaf in leaves
    )
    return "sha256:" + hashlib.sha256(b"".join(head + path + b"\0" for path, head in lines)).hexdigest()


def hash_of_nodes(nodes: Mapping[str, Node]) -> str:
    """Return the tree hash of a tree in memory."""
    return tree_hash(leaf_of(path, node) for path, node in nodes.items())
