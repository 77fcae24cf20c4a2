"""Orientation and spacing of grids whose axes lie along the world's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .nifti import Array, Volume

LETTERS = ("LR", "PA", "IS")


def codes(affine: Array) -> str:
    """Return where each voxel axis points, such as `RAS`."""
    return "".join(LETTERS[row][int(sign > 0)] for row, sign in _axes(affine))


def is_code(text: object) -> bool:
    """Whether `text` is an orientation: one letter of each world axis."""
    return isinstance(text, str) and len(text) == 3 and {_row(letter) for letter in text} == {0, 1, 2}


def _row(letter: str) -> int:
    return next((row for row, pair in enumerate(LETTERS) if letter in pair), -1)


def _axes(affine: Array) -> list[tuple[int, float]]:
    """Return for each voxel axis its world axis and direction."""
    found: list[tuple[int, float]] = []
    free = [0, 1, 2]
    for axis in range(3):
        row = max(free, key=lambda r: abs(affine[r, axis]))
        free.remove(row)
        found.append((row, float(np.sign(affine[row, axis]) or 1.0)))
    return found


@dataclass(frozen=True)
class Turn:
    """How an image is turned to an orientation, and resampled there to one spacing."""

    order: tuple[int, ...]
    flips: tuple[bool, ...]
    sizes: tuple[int, ...]
    steps: tuple[float, ...]

    def forth(self, data: Array) -> Array:
        """Return `data` in the model's grid, linearly interpolated."""
        out = np.transpose(np.asarray(data, np.float32), self.order)
        out = out[tuple(slice(None, None, -1 if flip else 1) for flip in self.flips)]
        for axis, (size, step) in enumerate(zip(self.sizes, self.steps, strict=True)):
            out = _linear(out, axis, size, step)
        return out

    def back(self, scores: Array, shape: tuple[int, ...]) -> Array:
        """Return `scores` of the model's grid in the image's own grid, linearly interpolated."""
        out = scores
        for axis, (source, step) in enumerate(zip(self.order, self.steps, strict=True)):
            out = _linear(out, axis, shape[source], 1 / step)
        out = out[tuple(slice(None, None, -1 if flip else 1) for flip in self.flips)]
        return np.ascontiguousarray(np.transpose(out, np.argsort(self.order)))


def turn(volume: Volume, target: str, spacing: float) -> Turn:
    """Return how `volume` gets to orientation `target` and isotropic `spacing`."""
    axes = _axes(volume.affine)
    rows = [row for row, _ in axes]
    order = tuple(rows.index(_row(letter)) for letter in target)
    flips = tuple(
        (axes[axis][1] > 0) != (letter == LETTERS[_row(letter)][1]) for axis, letter in zip(order, target, strict=True)
    )
    zooms = volume.zooms
    sizes = tuple(max(4, min(64, round(volume.data.shape[axis] * float(zooms[axis]) / spacing))) for axis in order)
    return Turn(order, flips, sizes, tuple(spacing / float(zooms[axis]) for axis in order))


def _linear(data: Array, axis: int, size: int, step: float) -> Array:
    length = data.shape[axis]
    place = np.clip((np.arange(size) - (size - 1) / 2) * step + (length - 1) / 2, 0, length - 1)
    low = np.minimum(place.astype(int), max(length - 2, 0))
    share = (place - low).astype(np.float32).reshape([-1 if a == axis else 1 for a in range(3)])
    first, second = data.take(low, axis), data.take(np.minimum(low + 1, length - 1), axis)
    return np.asarray(first + (second - first) * share)
