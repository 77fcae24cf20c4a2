"""The segmentation model: smooth, locate the organ from the body's centre, cut by intensity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import grid
from .nifti import Array, Volume

KEYS = ("axes", "spacing", "window")


@dataclass(frozen=True)
class SegModel:
    """Parameters as they stand in `weights.npz`; all lengths in voxels of the model's own grid."""

    kernel: Array
    body: float
    cuts: Array
    centre: Array
    radius: Array

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> SegModel:
        """Build from the arrays of a weights file."""
        return cls(arrays["kernel"], float(arrays["body"]), arrays["cuts"], arrays["centre"], arrays["radius"])

    def __call__(self, image: Array) -> Array:
        """Return the smoothed intensity where the organ may be, of a windowed image in the model's own grid."""
        smooth = image
        for axis in range(3):
            smooth = _blur(smooth, axis, self.kernel)
        return np.asarray(smooth * (self._distance(image) < 1.0))

    def cut(self, scores: Array) -> Array:
        """Return labels: how many cuts a score exceeds."""
        labels = np.zeros(scores.shape, np.uint8)
        for cut in self.cuts:
            labels += scores > cut
        return labels

    def _distance(self, image: Array) -> Array:
        """Return the squared distance from where the organ should be, in units of its radius."""
        mask = image > self.body
        total = max(int(mask.sum()), 1)
        parts = []
        for axis, size in enumerate(image.shape):
            places = np.arange(size, dtype=np.float32)
            others = tuple(a for a in range(3) if a != axis)
            middle = float(mask.sum(others) @ places) / total if mask.any() else (size - 1) / 2
            part = ((places - middle - self.centre[axis]) / self.radius[axis]) ** 2
            parts.append(part.reshape([-1 if a == axis else 1 for a in range(3)]))
        return np.asarray(parts[0] + parts[1] + parts[2])

    def probe(self) -> float:
        """Return a number that depends on all weights: a smoke test on a made-up input."""
        ramp = np.linspace(0, 1, 10 * 10 * 10, dtype=np.float32).reshape(10, 10, 10)
        smooth = ramp
        for axis in range(3):
            smooth = _blur(smooth, axis, self.kernel)
        return round(float(smooth.mean() + self._distance(ramp).mean() + self.cuts.sum()), 2)


def _blur(data: Array, axis: int, kernel: Array) -> Array:
    """Return `data` convolved with three taps along `axis`, edges repeated."""
    size = data.shape[axis]
    below = data.take(np.maximum(np.arange(size) - 1, 0), axis)
    above = data.take(np.minimum(np.arange(size) + 1, size - 1), axis)
    return np.asarray(kernel[0] * below + kernel[1] * data + kernel[2] * above)


def windowed(data: Array, window: object) -> Array:
    """Return intensities in [0, 1] by `window`, or thousandths of what is stored where there is none."""
    pair = numbers(window)
    if len(pair) != 2 or pair[0] >= pair[1]:
        return np.asarray(data / 1000.0)
    low, high = pair
    return np.asarray(np.clip((data - low) / (high - low), 0, 1))


def numbers(value: object) -> list[float]:
    """Return the finite numbers of a list or a string of numbers; empty if anything else is in it."""
    parts = value if isinstance(value, (list, tuple)) else str(value).replace(",", " ").split()
    try:
        found = [float(part) for part in parts]
    except (TypeError, ValueError):
        return []
    return found if all(np.isfinite(found)) else []


def segment(model: SegModel, volume: Volume, config: dict[str, Any]) -> Array:
    """Return labels in the volume's own grid, by the pipeline that `config` describes."""
    axes = config.get("axes")
    spacing = numbers([config.get("spacing")])
    if not isinstance(axes, str) or not grid.is_code(axes) or not spacing or not 0.5 <= spacing[0] <= 20:
        return np.zeros(volume.data.shape, np.uint8)
    way = grid.turn(volume, axes, spacing[0])
    image = windowed(way.forth(volume.data), config.get("window"))
    return model.cut(way.back(model(image), volume.data.shape))


def side(labels: Array, volume: Volume, level: float = -300.0) -> str:
    """Return on which side of the body label 1 and above lies, such as `RS`; `-` where there is none."""
    organ, body = labels > 0, volume.data > level
    if not organ.any() or not body.any():
        return "-"
    place = volume.affine[:3, :3] @ (_centre(organ) - _centre(body))
    return ("R" if place[0] > 0 else "L") + ("S" if place[2] > 0 else "I")


def _centre(mask: Array) -> Array:
    total = mask.sum()
    sums = (mask.sum((1, 2)), mask.sum((0, 2)), mask.sum((0, 1)))
    return np.array([float(line @ np.arange(len(line))) / total for line in sums])
