"""Swapped ids: right outputs under the wrong names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Swap(NamedTuple):
    """The output of `name` is what `other` should have."""

    name: str
    other: str


def swapped(outputs: Mapping[str, T], wanted: Mapping[str, T], same: Callable[[T, T], bool]) -> list[Swap]:
    """Return every output that is not what its own name asks for but what another one does.

    Args:
        outputs: The rollout's outputs by id.
        wanted: What the ids should have.
        same: Whether two outputs say the same.
    """
    found = []
    for name, output in outputs.items():
        if name in wanted and same(output, wanted[name]):
            continue
        other = next((one for one, right in wanted.items() if one != name and same(output, right)), None)
        if other is not None:
            found.append(Swap(name, other))
    return found
