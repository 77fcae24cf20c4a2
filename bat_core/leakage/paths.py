"""Where a field stands in a sample; rendered only when a finding needs it.

Names that could themselves be held-out text are shown by their position (`{3}`), never spelled out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_PLAIN_KEY = re.compile(r"[A-Za-z_]{1,15}")
_SHOWN = 12


class Node(NamedTuple):
    """A step into a sample; nodes are compared by identity, for deep chains must not recurse."""

    parent: Node | None
    label: str


ROOT = Node(None, "$")


def member(parent: Node, key: str, ordinal: int) -> Node:
    """Return the node of an object's member, `ordinal` being its position in the object."""
    return Node(parent, f".{key}" if _PLAIN_KEY.fullmatch(key) else f".{{{ordinal}}}")


def element(parent: Node, index: int) -> Node:
    """Return the node of an array's element."""
    return Node(parent, f"[{index}]")


def key_of(node: Node) -> Node:
    """Return the node of the key under which `node` is stored."""
    return Node(node, "~key")


def render(node: Node) -> str:
    """Return the JSON path of a node; the middle of a very deep one is left out."""
    labels: list[str] = []
    step: Node | None = node
    while step is not None:
        labels.append(step.label)
        step = step.parent
    labels.reverse()
    if len(labels) > 2 * _SHOWN:
        labels[_SHOWN:-_SHOWN] = ["…"]
    return "".join(labels)
