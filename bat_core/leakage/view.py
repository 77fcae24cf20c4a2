"""A sample as the rules see it: every text in it, however nested, split, quoted or encoded.

Long values are fields of their own. Short values and unusual keys are read as one joined field, in the order
of the sample, so that what was split over several of them is whole again. JSON inside strings is opened, and
encodings are undone. Everything is iterative and bounded; a sample over a bound is an error, thus a rejection.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from bat_core.errors import LeakageError
from bat_core.leakage import paths
from bat_core.leakage.decode import DEPTH, Decoded, Piece, decode
from bat_core.leakage.normalise import Views

SHORT = 64
MAX_FIELDS = 500_000
MAX_CHARS = 16_000_000
MAX_DECODED = 4_000_000
_OPENED = 3
_HUGE_BITS = 10_000


class Place(NamedTuple):
    """Path of a field, and a span in the field as given."""

    path: str
    start: int
    end: int


class Anchor(NamedTuple):
    """From offset `at` on, a field's text comes from this span of a field as given; `exact` if unchanged."""

    at: int
    node: paths.Node
    start: int
    end: int
    exact: bool


class Field:
    """A text to check, and the way back from it to the sample."""

    def __init__(self, text: str, anchors: tuple[Anchor, ...], depth: int = 0) -> None:
        self.text = text
        self.anchors = anchors
        self.depth = depth

    @cached_property
    def views(self) -> Views:
        """The normalised views, shared by all rules."""
        return Views(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [anchor.at for anchor in self.anchors]

    def _anchor(self, position: int) -> Anchor:
        return self.anchors[max(0, bisect_right(self._starts, position) - 1)]

    def origin(self, start: int, end: int) -> tuple[paths.Node, int, int]:
        """Return the node and the span in the field as given from which a span of the text comes."""
        first, last = self._anchor(start), self._anchor(end - 1)
        begin = min(first.start + start - first.at, first.end) if first.exact else first.start
        if last.node is not first.node:
            return first.node, begin, first.end
        stop = min(last.start + end - last.at, last.end) if last.exact else last.end
        return first.node, begin, max(begin, stop)

    def place(self, start: int, end: int) -> Place:
        """Return the place in the sample of a span of the folded text."""
        node, begin, stop = self.origin(*self.views.to_raw(start, end))
        return Place(paths.render(node), begin, stop)

    def _kept(self, piece: Piece) -> Iterator[Anchor]:
        """Yield anchors of a piece that a decoding left as it was: one for each field it came from."""
        at = piece.start
        while at < piece.end:
            number = max(0, bisect_right(self._starts, at) - 1)
            last = number + 1 == len(self.anchors)
            stop = piece.end if last else min(piece.end, self.anchors[number + 1].at)
            yield Anchor(piece.at + at - piece.start, *self.origin(at, stop), self.anchors[number].exact)
            at = stop

    def decoded(self, found: Decoded) -> Field:
        """Return a decoding of this field as a field."""
        anchors: list[Anchor] = []
        for piece in found.pieces:
            if piece.exact:
                anchors.extend(self._kept(piece))
            else:
                node, start, end = self.origin(piece.start, piece.end)
                anchors.append(Anchor(piece.at, node, start, end, False))
        return Field(found.text, tuple(anchors), self.depth + 1)


@dataclass(frozen=True)
class View:
    """All fields of a sample."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class _Visit:
    """A value still to walk; `within` is the length of the string that held it as JSON."""

    value: Any
    node: paths.Node
    within: int | None = None
    opened: int = 0


def view_of(sample: Any) -> View:
    """Return all texts of a JSON value.

    Raises:
        LeakageError: It is too large to check, or holds something that JSON can't.
    """
    long: list[Field] = []
    short: list[tuple[str, Anchor]] = []
    chars = 0
    for number, (text, anchor) in enumerate(_leaves(sample)):
        chars += len(text)
        if number >= MAX_FIELDS or chars > MAX_CHARS:
            raise LeakageError("a sample is too large to check", remedy="split it, or leave it out of training")
        if len(text) > SHORT:
            long.append(Field(text, (anchor,)))
        else:
            short.append((text, anchor))
    if short:
        long.append(_joined(short))
    return View(tuple(_with_decodings(long)))


def _leaves(sample: Any) -> Iterator[tuple[str, Anchor]]:
    """Yield texts in the order of the sample: values, numbers, unusual keys."""
    stack = [_Visit(sample, paths.ROOT)]
    while stack:
        visit = stack.pop()
        value = visit.value
        if isinstance(value, str):
            inner = _opened(value) if visit.opened < _OPENED else None
            if inner is not None:
                within = len(value) if visit.within is None else visit.within
                stack.append(_Visit(inner, visit.node, within, visit.opened + 1))
            if value and (inner is None or len(value) > SHORT):
                yield _leaf(value, visit)
        elif isinstance(value, dict | list | tuple):
            stack.extend(reversed(_children(visit)))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield _leaf(_number(value), visit)
        elif value is not None and not isinstance(value, bool):
            raise LeakageError(f"a sample holds a {type(value).__name__}", remedy="pass plain JSON values")


def _children(visit: _Visit) -> list[_Visit]:
    within, opened = visit.within, visit.opened
    if not isinstance(visit.value, dict):
        return [_Visit(v, paths.element(visit.node, i), within, opened) for i, v in enumerate(visit.value)]
    children = []
    for ordinal, (key, value) in enumerate(visit.value.items()):
        name = str(key)
        node = paths.member(visit.node, name, ordinal)
        if not paths.is_plain_key(name):
            children.append(_Visit(name, paths.key_of(node), within, opened))
        children.append(_Visit(value, node, within, opened))
    return children


def _opened(text: str) -> Any:
    """Return the JSON object, array or string that a string holds, else None."""
    stripped = text.strip()
    if len(stripped) < 2 or stripped[0] + stripped[-1] not in ("{}", "[]", '""'):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        # Not JSON, or deeper than the parser goes: its text is still checked as it stands.
        return None


def _number(value: float) -> str:
    """Return a number's digits; Python refuses to spell out very long integers in decimals."""
    return hex(value) if isinstance(value, int) and value.bit_length() > _HUGE_BITS else str(value)


def _leaf(text: str, visit: _Visit) -> tuple[str, Anchor]:
    if visit.within is None:
        return text, Anchor(0, visit.node, 0, len(text), True)
    return text, Anchor(0, visit.node, 0, visit.within, False)


def _joined(leaves: list[tuple[str, Anchor]]) -> Field:
    anchors, at = [], 0
    for text, anchor in leaves:
        anchors.append(anchor._replace(at=at))
        at += len(text) + 1
    return Field("\n".join(text for text, _ in leaves), tuple(anchors))


def _with_decodings(fields: list[Field]) -> Iterator[Field]:
    """Yield fields and what they say decoded, layer by layer."""
    queue, budget = fields, MAX_DECODED
    seen = {field.text for field in fields}
    while queue:
        yield from queue
        found = []
        for field in queue:
            for decoded in decode(field.text) if field.depth < DEPTH else ():
                budget -= len(decoded.text)
                if budget < 0:
                    raise LeakageError("a sample has too much encoded text to check", remedy="leave it out of training")
                if decoded.text not in seen:
                    seen.add(decoded.text)
                    found.append(field.decoded(decoded))
        queue = found
