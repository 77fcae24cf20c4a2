"""Degeneracy: outputs that are constant, the inputs again, copies of each other, or learnt by heart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def flat(values: Sequence[Hashable]) -> bool:
    """Return whether an output holds the same value everywhere, or nothing."""
    return len(set(values)) < 2


def identical(outputs: Mapping[str, K], inputs: Mapping[str, Hashable] | None = None) -> list[tuple[str, str]]:
    """Return pairs of names with the same output, those with the same input excepted."""
    seen: dict[K, str] = {}
    pairs = []
    for name, output in outputs.items():
        other = seen.setdefault(output, name)
        same_input = inputs is not None and inputs.get(other) == inputs.get(name)
        if other != name and not same_input:
            pairs.append((other, name))
    return pairs


def copied(outputs: Mapping[str, bytes], sources: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Return pairs of an output and the source whose content it repeats, white space aside."""
    known = {_folded(data): path for path, data in sources.items() if _folded(data)}
    return [(name, known[_folded(data)]) for name, data in outputs.items() if _folded(data) in known]


def alike_share(output: Sequence[Hashable], source: Sequence[Hashable]) -> float:
    """Return the share of places at which an output repeats its source: near copies."""
    if not output or len(output) != len(source):
        return 0.0
    return sum(one == other for one, other in zip(output, source, strict=True)) / len(output)


def memorised(given: Sequence[bool], unseen: Sequence[bool], slack: float = 0.34) -> bool:
    """Return whether answers are right on given inputs and not on unseen ones of the same kind.

    Args:
        given: Right or wrong, one for each given input.
        unseen: The same for inputs that the agent has never seen.
        slack: By how much the share of right answers may fall.
    """
    if not given or not unseen:
        return False
    return sum(given) / len(given) - sum(unseen) / len(unseen) > slack


def _folded(data: bytes) -> bytes:
    return b" ".join(data.split())
