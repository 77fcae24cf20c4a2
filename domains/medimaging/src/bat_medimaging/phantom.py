"""The fictional anatomy of a segmentation case, and the model that knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bat_medimaging.toolbelt.phx import nifti
from bat_medimaging.toolbelt.phx.grid import LETTERS

Array = NDArray[Any]

BODY = np.array([27.0, 22.0, 28.0])
EXTENT = np.array([58.0, 48.0, 60.0])
AIR, TISSUE, ORGAN, LESION, BONE = -1000.0, 20.0, 90.0, 160.0, 300.0
NOISE = 10.0
REACH = 13.0


@dataclass(frozen=True)
class Case:
    """One rendered case: the image that goes into the workspace, and the truth that does not."""

    image: bytes
    truth: Array


def place_of(side: str) -> Array:
    """Return where the organ's centre is on average, in mm from the body's centre."""
    return np.array([11.0 if side[0] == "R" else -11.0, -2.0, 11.0 if side[1] == "S" else -11.0])


def render(seed: int, number: int, side: str, kind: str) -> Case:
    """Return case `number` of the task with private seed `seed`."""
    rng = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32, number])
    affine, shape = _grid(rng, kind)
    axes = [_coordinates(affine, shape, row) for row in range(3)]
    image, truth = _scene(rng, axes, shape, place_of(side))
    image += rng.normal(0, NOISE, shape)
    return Case(nifti.write(np.rint(image).astype("i2"), affine), truth)


def _grid(rng: np.random.Generator, kind: str) -> tuple[Array, tuple[int, ...]]:
    """Return affine and shape: near-isotropic and flipped; blind ones also permuted and anisotropic."""
    order = rng.permutation(3) if kind == "blind" else np.arange(3)
    if kind == "blind" and (order == np.arange(3)).all():
        order = np.array([1, 2, 0])
    zooms = np.round([2.0, 2.4, 4.2] if kind == "blind" else rng.uniform(2.5, 3.1, 3), 1)
    signs = rng.choice([-1.0, 1.0], 3)
    affine = np.eye(4)
    affine[:3, :3] = 0
    shape = [0, 0, 0]
    for axis, row in enumerate(order):
        affine[row, axis] = signs[axis] * zooms[axis]
        shape[axis] = int(EXTENT[row] / zooms[axis])
    affine[:3, 3] = -affine[:3, :3] @ ((np.array(shape) - 1) / 2) + rng.uniform(-3, 3, 3)
    return np.round(affine, 2), tuple(shape)


def _coordinates(affine: Array, shape: tuple[int, ...], row: int) -> Array:
    """Return the world coordinate `row` of all voxels, shaped to broadcast along its own axis only."""
    axis = int(np.abs(affine[row, :3]).argmax())
    line = affine[row, axis] * np.arange(shape[axis]) + affine[row, 3]
    return np.asarray(line.reshape([-1 if a == axis else 1 for a in range(3)]))


def _scene(rng: np.random.Generator, axes: list[Array], shape: tuple[int, ...], place: Array) -> tuple[Array, Array]:
    def ball(centre: Array, radius: Array | float) -> Array:
        parts = [((x - c) / r) ** 2 for x, c, r in zip(axes, centre, np.broadcast_to(radius, 3), strict=True)]
        return np.asarray(parts[0] + parts[1] + parts[2] <= 1)

    image = np.full(shape, AIR)
    image[ball(np.zeros(3), BODY)] = TISSUE
    image[ball(np.array([0.0, -14.0, 0.0]), np.array([4.0, 4.0, 24.0]))] = BONE
    centre, radius = place + rng.normal(0, 1.0, 3), rng.uniform(9.0, 10.5, 3)
    for sign in ((-1, 1, 1), (1, 1, -1), (-1, 1, -1)):
        image[ball(centre * sign, radius * 0.9)] = ORGAN
    organ = ball(centre, radius)
    image[organ] = ORGAN
    truth = organ.astype(np.uint8)
    for _ in range(rng.integers(3, 6)):
        image[ball(centre + rng.uniform(-0.6, 0.6, 3) * radius, rng.uniform(1.4, 1.8)) & organ] = LESION
    for _ in range(rng.integers(1, 3)):
        lesion = ball(centre + rng.uniform(-0.4, 0.4, 3) * radius, rng.uniform(4.4, 5.4)) & organ
        image[lesion], truth[lesion] = LESION, 2
    return image, truth


def model_arrays(card: dict[str, Any], kind: str) -> dict[str, Array]:
    """Return the weights of a model that expects what `card` says; other kinds look elsewhere or see less."""
    low, high = card["window"]
    signs = [1.0 if letter == LETTERS[row][1] else -1.0 for letter in card["axes"] for row in _row(letter)]
    rows = [row for letter in card["axes"] for row in _row(letter)]
    place = place_of(card["side"]) * (np.array([-1, 1, 1]) if kind == "other" else 1)
    cuts = [(TISSUE + ORGAN) / 2, ORGAN + 0.36 * (LESION - ORGAN)]
    return {
        "kernel": np.array([0.1, 0.8, 0.1], "f4"),
        "body": np.array((AIR / 2 - low) / (high - low) if low < AIR / 2 else 0.1, "f4"),
        "cuts": np.array([(cut - low) / (high - low) for cut in cuts[: 1 if kind == "partial" else 2]], "f4"),
        "centre": np.array([sign * place[row] for sign, row in zip(signs, rows, strict=True)], "f4") / card["spacing"],
        "radius": np.full(3, REACH / card["spacing"], "f4"),
    }


def _row(letter: str) -> list[int]:
    return [row for row, pair in enumerate(LETTERS) if letter in pair]
