"""The classification model: tint and stripe direction of the middle of a picture, then a linear layer."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from .nifti import Array, Unreadable
from .seg import numbers

# Plugins load on first use; a preloaded module must not leave that to every call.
Image.preinit()

KEYS = ("channels", "scale", "labels")
LARGEST_SIDE = 256


@dataclass(frozen=True)
class ClsModel:
    """Parameters as they stand in `weights.npz`."""

    weight: Array
    bias: Array
    mean: Array
    std: Array
    classes: tuple[str, ...]

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> ClsModel:
        """Build from the arrays of a weights file."""
        names = tuple(str(name) for name in arrays["classes"])
        return cls(arrays["weight"], arrays["bias"], arrays["mean"], arrays["std"], names)

    def __call__(self, image: Array) -> Array:
        """Return class probabilities of a normalised picture."""
        height, width = image.shape[:2]
        middle = image[height // 4 : height - height // 4, width // 4 : width - width // 4]
        grey = middle.mean(-1)
        across, down = np.abs(np.diff(grey, axis=1)).mean(), np.abs(np.diff(grey, axis=0)).mean()
        tint = float((middle[..., 0] - middle[..., 2]).mean())
        stripes = float(np.log((across + 1e-3) / (down + 1e-3)))
        scores = self.weight @ np.array([tint, stripes]) + self.bias
        odds = np.exp(scores - scores.max())
        return np.asarray(odds / odds.sum())

    def probe(self) -> float:
        """Return a number that depends on all weights: a smoke test on a made-up input."""
        ramp = np.linspace(0, 1, 8 * 8 * 3).reshape(8, 8, 3)
        odds = self((ramp - self.mean) / self.std)
        return round(float(odds @ np.arange(1, len(odds) + 1)) + float(np.abs(self.weight).sum()), 2)


@dataclass(frozen=True)
class Guess:
    """What the model says about one picture."""

    index: int
    label: str
    conf: float
    mean: tuple[float, ...]


def decode(blob: bytes | None) -> Array:
    """Return the RGB pixels of a picture; raises `Unreadable`, and nothing else, for anything that is none."""
    if not blob:
        raise Unreadable("empty")
    try:
        with Image.open(io.BytesIO(blob), formats=("PNG",)) as image:
            if max(image.size) > LARGEST_SIDE:
                raise Unreadable("huge")
            return np.asarray(image.convert("RGB"))
    except UnidentifiedImageError:
        raise Unreadable("damaged") from None
    except (OSError, SyntaxError, EOFError, struct.error, zlib.error, Image.DecompressionBombError):
        raise Unreadable("truncated") from None


def normalised(pixels: Array, model: ClsModel, config: dict[str, Any]) -> Array:
    """Return pixels as `config` prepares them for the model."""
    scale = numbers([config.get("scale")]) or [1.0]
    ordered = pixels[..., ::-1] if config.get("channels") == "BGR" else pixels
    return np.asarray((ordered / (scale[0] or 1.0) - model.mean) / model.std)


def classify(model: ClsModel, pixels: Array, config: dict[str, Any]) -> Guess:
    """Return the model's guess by the pipeline that `config` describes."""
    image = normalised(pixels, model, config)
    odds = model(image)
    index = int(odds.argmax())
    labels = str(config.get("labels", "")).replace(",", " ").split() or list(model.classes)
    label = labels[index] if index < len(labels) else "none"
    mean = tuple(round(float(value), 1) + 0.0 for value in image.mean((0, 1)))
    return Guess(index, label, round(float(odds[index]), 2), mean)
