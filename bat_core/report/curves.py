"""Curves as geometry: where points, gaps and ticks lie; the template draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

LEFT, RIGHT, TOP, BOTTOM = 34, 12, 26, 28
STEPS = (1, 2, 5, 10, 20, 25, 50)


@dataclass(frozen=True)
class Point:
    """A value at a place on the horizontal axis; None leaves a gap. `mark` is a decision."""

    x: float
    y: float | None
    name: str
    note: str
    mark: str = ""


@dataclass(frozen=True)
class Dot:
    """A drawn point, in pixels."""

    x: float
    y: float
    note: str
    mark: str


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, and what is written there."""

    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """A line chart laid out in pixels; `lines` are runs of neighbouring points, broken where one is missing."""

    title: str
    width: int
    height: int
    lines: Sequence[str]
    dots: Sequence[Dot]
    across: Sequence[Tick]
    up: Sequence[Tick]
    walls: Sequence[float] = ()

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of the plot."""
        return LEFT, TOP, self.width - RIGHT, self.height - BOTTOM


@dataclass(frozen=True)
class Scale:
    """From values on an axis to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return where `value` lies."""
        return round(self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start), 1)


def curve(
    title: str, values: Sequence[Point], size: tuple[int, int], top: float | None = None, walls: Sequence[float] = ()
) -> Curve:
    """Lay out a line chart.

    Args:
        title: What it shows.
        values: In order of x.
        size: Width and height in pixels.
        top: Upper end of the vertical axis, from 0; None fits it to the values.
        walls: Places of vertical lines.
    """
    width, height = size
    known = [point.y for point in values if point.y is not None]
    low, high, step = _range(known) if top is None else (0.0, top, _step(top))
    xs = [point.x for point in values] or [0.0]
    across = Scale(min(xs), max(xs), LEFT + 8, width - RIGHT - 8)
    up = Scale(low, high, height - BOTTOM, TOP)
    levels = [low + n * step for n in range(int((high - low) / step + 1e-9) + 1)]
    return Curve(
        title=title,
        width=width,
        height=height,
        lines=[" ".join(f"{across(p.x)},{up(p.y)}" for p in run if p.y is not None) for run in _runs(values)],
        dots=[Dot(across(p.x), up(p.y), p.note, p.mark) for p in values if p.y is not None],
        across=[Tick(across(p.x), p.name) for p in values if p.name],
        up=[Tick(up(level), f"{level:g}") for level in levels],
        walls=[across(wall) for wall in walls],
    )


def _runs(values: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield neighbouring points without a gap between them."""
    for known, run in groupby(values, lambda point: point.y is not None):
        if known:
            yield list(run)


class Range(NamedTuple):
    """An axis: its ends, and the distance of its ticks."""

    low: float
    high: float
    step: float


def _range(values: Sequence[float]) -> Range:
    """Return round numbers below and above the values; two points at least, or noise would look like a trend."""
    if not values:
        return Range(0.0, 100.0, 20.0)
    step = _step(max(max(values) - min(values), 2.0))
    return Range((min(values) // step) * step, (max(values) // step + 1) * step, step)


def _step(span: float) -> float:
    """Return a round distance that gives six ticks at most."""
    scale = 1.0 if span > 4 else 0.01
    return next((s * scale for s in STEPS if span / (s * scale) <= 6), 50 * scale)
