"""One case through the configured pipeline, and what its output says when read back."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from . import cls, nifti, seg
from .nifti import Array, Unreadable, Volume
from .place import Files, Json, json_of
from .setup import CONFIG, input_path
from .weights import configured

PREDICTIONS = "outputs/predictions.csv"


@dataclass(frozen=True)
class Mask:
    """Labels of one case, in its own grid."""

    labels: Array
    affine: Array

    def blob(self) -> bytes:
        """Return the file."""
        return nifti.write(self.labels.astype(np.uint8), self.affine)


def config_of(files: Files) -> Json:
    """Return the pipeline's configuration."""
    return json_of(files, CONFIG)


def segment_case(files: Files, config: Json, case: str) -> Mask:
    """Return labels of a case; raises `Unreadable`."""
    model = configured(files, config)
    volume = nifti.read(files.get(input_path("segmentation", case)))
    if not isinstance(model, seg.SegModel):
        raise Unreadable("model")
    return Mask(seg.segment(model, volume, config), volume.affine)


def classify_case(files: Files, config: Json, case: str) -> cls.Guess:
    """Return the guess for a case; raises `Unreadable`."""
    model = configured(files, config)
    pixels = cls.decode(files.get(input_path("classification", case)))
    if not isinstance(model, cls.ClsModel):
        raise Unreadable("model")
    return cls.classify(model, pixels, config)


def guess_json(case: str, guess: cls.Guess) -> str:
    """Return the pilot file of a classified case."""
    record = {"case": case, "index": guess.index, "label": guess.label, "conf": guess.conf, "mean": list(guess.mean)}
    return json.dumps(record, sort_keys=True) + "\n"


@dataclass(frozen=True)
class MaskFacts:
    """What reading a mask back shows."""

    shape_ok: bool
    affine_ok: bool
    labels: tuple[int, ...]
    counts: tuple[int, int]
    side: str
    dtype: str

    @property
    def ratio(self) -> float:
        """Lesion voxels by all organ voxels."""
        return round(self.counts[1] / max(sum(self.counts), 1), 2)


def mask_facts(blob: bytes | None, volume: Volume) -> MaskFacts:
    """Return what a mask file says next to its input; raises `Unreadable`."""
    mask = nifti.read(blob)
    same = mask.data.shape == volume.data.shape
    values = mask.data
    counts = (int((values == 1).sum()), int((values == 2).sum()))
    if mask.dtype == "u1":
        found = np.flatnonzero(np.bincount(values.ravel(order="K")))
    else:
        found = np.unique(np.nan_to_num(np.asarray(values, np.float64), nan=-1.0, posinf=-1.0, neginf=-1.0))
    return MaskFacts(
        same,
        bool(np.allclose(mask.affine, volume.affine, atol=1e-2)),
        tuple(int(value) for value in found[:8]),
        counts,
        seg.side(values, volume) if same else "-",
        mask.dtype,
    )
