"""The fictional skin of a classification case, and the model that knows it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[Any]

SKIN = np.array([150.0, 117.0, 99.0])
SPREAD = 30.0
TINT = 13.0
STRIPES = 4.5
NOISE = 6.0
SIDES = {"bank": (40, 48), "blind": (56, 60)}


@dataclass(frozen=True)
class Case:
    """One rendered case: the picture that goes into the workspace, and the class that does not."""

    image: bytes
    truth: int


def classes_of(seed: int, count: int) -> list[int]:
    """Return the classes of all cases of a task, two different ones at least."""
    rng = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32, 999])
    order = rng.permutation(4)
    return [int(order[i % 4]) if i < 2 else int(rng.integers(4)) for i in rng.permutation(count)]


def render(seed: int, number: int, kind: str, truth: int) -> Case:
    """Return case `number`: class bit 0 is the stripes' direction, bit 1 the tint."""
    rng = np.random.default_rng([seed & 0xFFFFFFFF, seed >> 32, number])
    size = int(rng.choice(SIDES["blind" if kind == "blind" else "bank"]))
    down, across = np.indices((size, size), dtype=np.float64)
    along = across if truth & 1 else down
    waves = np.sin(along * 2 * np.pi / rng.uniform(5, 7) + rng.uniform(0, 6))
    middle = size / 2 + rng.uniform(-2, 2, 2)
    spot = 1 / (1 + np.exp((np.hypot(down - middle[0], across - middle[1]) - size * 0.38) / 1.5))
    grey = spot * STRIPES * waves + rng.normal(0, NOISE, (size, size)) + rng.normal(0, 8)
    rgb = SKIN + grey[..., None] + rng.normal(0, 4, 3)
    rgb[..., 0 if truth & 2 else 2] += spot * TINT
    out = io.BytesIO()
    Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8)).save(out, "PNG", compress_level=1)
    return Case(out.getvalue(), truth)


def model_arrays(card: dict[str, Any], targets: tuple[str, ...], labels: tuple[str, ...]) -> dict[str, Array]:
    """Return the weights of a model that expects what `card` says and answers in the order of `labels`."""
    turned = card["channels"] == "BGR"
    known = [targets.index(label) if label in targets else place for place, label in enumerate(labels)]
    tint = np.array([(1.0 if k & 2 else -1.0) * (-1 if turned else 1) for k in known])
    stripes = np.array([1.0 if k & 1 else -1.0 for k in known])
    mean = (SKIN[::-1] if turned else SKIN) / card["scale"]
    return {
        "weight": np.stack([4.0 * tint, 6.0 * stripes], 1).astype("f4"),
        "bias": np.zeros(len(labels), "f4"),
        "mean": mean.astype("f4"),
        "std": np.full(3, SPREAD / card["scale"], "f4"),
        "classes": np.array(labels),
    }
