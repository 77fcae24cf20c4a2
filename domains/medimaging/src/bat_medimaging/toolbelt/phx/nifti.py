"""Reading and writing NIfTI-1 images, small and strict, for bytes that nobody vouches for."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8"}
CODES = {"u1": 2, "i2": 4, "f4": 16}
HEADER = 348
LARGEST_AXIS = 256
LARGEST_IMAGE = 1 << 20


class Unreadable(ValueError):
    """Bytes that are no image; the message is one word that says why."""


@dataclass(frozen=True)
class Volume:
    """An image with its place in the world."""

    data: Array
    affine: Array
    dtype: str

    @property
    def zooms(self) -> Array:
        """Voxel sizes in mm."""
        return np.asarray(np.sqrt((self.affine[:3, :3] ** 2).sum(0)))


def write(data: Array, affine: Array) -> bytes:
    """Return a gzipped NIfTI-1 file; equal input gives equal bytes."""
    code = data.dtype.str[1:]
    head = bytearray(HEADER + 4)
    struct.pack_into("<i", head, 0, HEADER)
    struct.pack_into("<8h", head, 40, 3, *data.shape, 1, 1, 1, 1)
    struct.pack_into("<hh", head, 70, CODES[code], data.dtype.itemsize * 8)
    zooms = np.sqrt((affine[:3, :3] ** 2).sum(0))
    struct.pack_into("<8f", head, 76, 1.0, *zooms, 0, 0, 0, 0)
    struct.pack_into("<fff", head, 108, HEADER + 4, 1.0, 0.0)
    struct.pack_into("<B", head, 123, 2)
    struct.pack_into("<hh", head, 252, 0, 1)
    struct.pack_into("<12f", head, 280, *affine[:3].ravel())
    head[344:348] = b"n+1\0"
    return gzip.compress(bytes(head) + data.tobytes(order="F"), compresslevel=1, mtime=0)


@lru_cache(maxsize=64)
def read(blob: bytes | None) -> Volume:
    """Return the image in `blob`; raises `Unreadable`, and nothing else, for anything that is none."""
    if not blob:
        raise Unreadable("empty")
    raw = _unzip(blob)
    if len(raw) < HEADER + 4 or struct.unpack_from("<i", raw)[0] != HEADER or raw[344:347] != b"n+1":
        raise Unreadable("header")
    shape, code = _shape(raw), struct.unpack_from("<h", raw, 70)[0]
    if code not in TYPES:
        raise Unreadable("dtype")
    dtype = np.dtype("<" + TYPES[code])
    offset, slope, inter = struct.unpack_from("<fff", raw, 108)
    start = int(offset) if np.isfinite(offset) and HEADER <= offset < 1 << 16 else HEADER + 4
    count = int(np.prod(shape))
    if len(raw) < start + count * dtype.itemsize:
        raise Unreadable("truncated")
    data = np.frombuffer(raw, dtype, count, start).reshape(shape, order="F")
    if np.isfinite(slope) and np.isfinite(inter) and slope != 0 and (slope, inter) != (1.0, 0.0):
        data = data * slope + inter
    return Volume(data, _affine(raw), TYPES[code])


def _unzip(blob: bytes) -> bytes:
    if blob[:2] != b"\x1f\x8b":
        return blob[:LARGEST_IMAGE]
    try:
        stream = zlib.decompressobj(31)
        raw = stream.decompress(blob, LARGEST_IMAGE)
    except zlib.error:
        raise Unreadable("damaged") from None
    if not stream.eof:
        raise Unreadable("truncated" if len(raw) < LARGEST_IMAGE else "huge")
    return raw


def _shape(raw: bytes) -> tuple[int, ...]:
    dims = struct.unpack_from("<8h", raw, 40)
    if dims[0] not in (3, 4) or (dims[0] == 4 and dims[4] != 1):
        raise Unreadable("shape")
    if any(not 1 <= size <= LARGEST_AXIS for size in dims[1:4]) or dims[1] * dims[2] * dims[3] > LARGEST_IMAGE:
        raise Unreadable("shape")
    return dims[1:4]


def _affine(raw: bytes) -> Array:
    affine = np.eye(4)
    if struct.unpack_from("<h", raw, 254)[0] > 0:
        affine[:3] = np.array(struct.unpack_from("<12f", raw, 280)).reshape(3, 4)
    else:
        affine[:3, :3] = np.diag(struct.unpack_from("<3f", raw, 80))
    if not np.isfinite(affine).all() or np.abs(affine).max() > 1e6:
        raise Unreadable("affine")
    return affine
