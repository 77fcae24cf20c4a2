"""The texts of a sample: values, numbers and telling keys, in its order, and the way back to their JSON paths.

JSON inside strings is opened. Everything is iterative and bounded; a sample over a bound is an error, thus a rejection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from bat_core.errors import LeakageError
from bat_core.leakage import paths
from bat_core.leakage.strict import loads

MAX_LEAVES = 500_000
MAX_CHARS = 16_000_000
_OPENED = 3
_HUGE_BITS = 10_000
_CLOSING = {"{": "}", "[": "]", '"': '"'}
_BEFORE = frozenset([*_CLOSING, *" \t\n\r"])
"""What a string begins with that may hold JSON."""

_WORDS = """
    role content messages message type function name arguments args tool tools tool_calls tool_call_id call_id
    text id prompt completion response input output system user assistant steps step thought action observation
    meta metadata source run stage stages reward sample samples cmd command parameters properties index result
    results task tasks key value values title label labels data file files path paths image images url score
    scores question answer answers instruction instructions context conversation conversations turns turn history
    format version created model seed state slice snapshot rubrics items focus stratum track private tokens loss
    mask kind digest
"""
STRUCTURE = frozenset(_WORDS.split())
"""Keys that give a sample its form; all others are read as text."""


class Leaf(NamedTuple):
    """A text and where it stands; `within` is the length of the string that held it as JSON."""

    text: str
    node: paths.Node
    within: int | None


@dataclass(frozen=True)
class _Visit:
    value: Any
    node: paths.Node
    within: int | None = None
    opened: int = 0


def texts_of(sample: Any) -> list[str]:
    """Return all texts of a JSON value.

    Raises:
        LeakageError: It is too large to check, or holds something that JSON can't.
    """
    texts: list[str] = []
    stack: list[Any] = [sample]
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is str:
            if value[:1] in _BEFORE and (inner := _opened(value)) is not None:
                stack.append(_Opened(inner, 1))
            elif value:
                texts.append(value)
        elif kind is dict:
            stack.extend(_content(value)[::-1])
        elif kind is list or kind is tuple:
            stack.extend(value[::-1])
        elif kind is _Opened:
            _open(value, stack, texts)
        elif kind is not bool and value is not None:
            texts.append(_number(value))
    if len(texts) > MAX_LEAVES or sum(map(len, texts)) > MAX_CHARS:
        raise too_large()
    return texts


def too_large() -> LeakageError:
    """Return the error for a sample over a bound."""
    return LeakageError("a sample is too large to check", remedy="split it, or leave it out of training")


class _Opened(NamedTuple):
    """A value from JSON inside a string, and how deep such strings are nested."""

    value: Any
    depth: int


def _open(opened: _Opened, stack: list[Any], texts: list[str]) -> None:
    """Put what an opened value holds on the stack."""
    value, depth = opened
    if isinstance(value, dict):
        stack.extend(_Opened(one, depth) for one in _content(value)[::-1])
    elif isinstance(value, list):
        stack.extend(_Opened(one, depth) for one in value[::-1])
    elif isinstance(value, str) and depth < _OPENED and (inner := _opened(value)) is not None:
        stack.append(_Opened(inner, depth + 1))
    elif isinstance(value, str):
        if value:
            texts.append(value)
    elif not isinstance(value, bool) and value is not None:
        texts.append(_number(value))


def _content(value: dict[Any, Any]) -> list[Any]:
    """Return values of an object in order, each after its key if that is more than structure."""
    if STRUCTURE.issuperset(value):
        return list(value.values())
    content: list[Any] = []
    for key, inner in value.items():
        if key not in STRUCTURE:
            content.append(_Key(key))
        content.append(inner)
    return [str(one) if type(one) is _Key else one for one in content]


class _Key(str):
    """A key that is read as text."""


def leaves_of(sample: Any) -> Iterator[Leaf]:
    """Yield the same texts as `texts_of`, with their places."""
    stack = [_Visit(sample, paths.ROOT)]
    while stack:
        visit = stack.pop()
        value = visit.value
        if isinstance(value, str):
            inner = _opened(value) if visit.opened < _OPENED else None
            if inner is not None:
                within = len(value) if visit.within is None else visit.within
                stack.append(_Visit(inner, visit.node, within, visit.opened + 1))
            elif value:
                yield Leaf(value, visit.node, visit.within)
        elif isinstance(value, dict | list | tuple):
            stack.extend(reversed(_children(visit)))
        elif not isinstance(value, bool) and value is not None:
            yield Leaf(_number(value), visit.node, visit.within)


def _children(visit: _Visit) -> list[_Visit]:
    within, opened = visit.within, visit.opened
    if not isinstance(visit.value, dict):
        return [_Visit(v, paths.element(visit.node, i), within, opened) for i, v in enumerate(visit.value)]
    children = []
    for ordinal, (key, value) in enumerate(visit.value.items()):
        name = str(key)
        node = paths.member(visit.node, name, ordinal)
        if name not in STRUCTURE:
            children.append(_Visit(name, paths.key_of(node), within, opened))
        children.append(_Visit(value, node, within, opened))
    return children


def _opened(text: str) -> Any:
    """Return the JSON object, array or string that a string holds, else None."""
    stripped = text.strip(" \t\n\r")
    if len(stripped) < 2 or _CLOSING.get(stripped[0]) != stripped[-1]:
        return None
    try:
        return loads(stripped)
    except (ValueError, RecursionError):
        # Not JSON, deeper than the parser goes, or with a key twice: its text is checked as it stands.
        return None


def _number(value: Any) -> str:
    """Return a number's digits; Python refuses to spell out very long integers in decimals."""
    if not isinstance(value, int | float):
        raise LeakageError(f"a sample holds a {type(value).__name__}", remedy="pass plain JSON values")
    return hex(value) if isinstance(value, int) and value.bit_length() > _HUGE_BITS else str(value)
