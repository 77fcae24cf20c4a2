"""Weights files: reading them without trusting them, and their hash."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from functools import lru_cache

import numpy as np

from .cls import ClsModel
from .nifti import Array, Unreadable
from .place import Files, Json, json_of, text_of
from .seg import SegModel

Model = SegModel | ClsModel


def sha_of(data: bytes) -> str:
    """Return the hex sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def expected_sha(files: Files, model: str) -> str:
    """Return the hash that the model's own `weights.sha256` gives."""
    return (text_of(files, f"models/{model}/weights.sha256", 256).split() or [""])[0]


def mirrors(files: Files, model: str) -> list[str]:
    """Return the other weights files that the model's card lists."""
    listed = json_of(files, f"models/{model}/card.json").get("mirrors", [])
    return [str(name) for name in listed] if isinstance(listed, list) else []


@lru_cache(maxsize=32)
def parse(blob: bytes | None) -> Model:
    """Return the model in `blob`; raises `Unreadable` for anything that is none."""
    if not blob:
        raise Unreadable("missing")
    try:
        with np.load(io.BytesIO(blob), allow_pickle=False) as archive:
            arrays: dict[str, Array] = {name: archive[name] for name in archive.files[:8]}
        return ClsModel.from_arrays(arrays) if "classes" in arrays else SegModel.from_arrays(arrays)
    except (ValueError, KeyError, OSError, EOFError, TypeError, zipfile.BadZipFile, zlib.error):
        raise Unreadable("damaged") from None


@lru_cache(maxsize=32)
def probe_of(blob: bytes) -> float:
    """Return the smoke test's number of the weights in `blob`; raises `Unreadable`."""
    return parse(blob).probe()


def configured(files: Files, config: Json) -> Model:
    """Return the model that a pipeline configuration names."""
    return parse(files.get(f"models/{config.get('model')}/{config.get('weights')}"))
