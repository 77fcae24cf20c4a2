"""A docker-archive written by hand: nothing in it knows the time, so that the same content has the same id."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

from bat_core.sandboxes.docker.layer import Layer

_BEGINNING = "1970-01-01T00:00:00Z"
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class Written(NamedTuple):
    """An archive's image: its id, and the bytes of its layers together."""

    id: str
    size: int


def write_archive(layers: Sequence[Layer], config: Mapping[str, Any], tag: str, archive: IO[bytes]) -> Written:
    """Write an image that `docker load` takes.

    Args:
        layers: From the bottom up.
        config: The image's runtime configuration, such as user and environment.
        tag: Name and tag; no part of the id.
        archive: Where to write.
    """
    tars = [layer.tar() for layer in layers]
    image = _json(
        {
            "architecture": _PROCESSORS.get(platform.machine(), platform.machine()),
            "config": dict(config),
            "created": _BEGINNING,
            "history": [{"created": _BEGINNING, "created_by": "bat sandbox build"} for _ in layers],
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [tar.digest for tar in tars]},
        }
    )
    name = hashlib.sha256(image).hexdigest()
    places = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = _json([{"Config": f"{name}.json", "RepoTags": [tag], "Layers": places}])
    with tarfile.open(fileobj=archive, mode="w|", format=tarfile.GNU_FORMAT) as whole:
        for place, tar in zip(places, tars, strict=True):
            _add(whole, place, tar.stream)
        _add(whole, f"{name}.json", io.BytesIO(image))
        _add(whole, "manifest.json", io.BytesIO(manifest))
    return Written(f"sha256:{name}", sum(tar.stream.seek(0, io.SEEK_END) for tar in tars))


def _add(tar: tarfile.TarFile, name: str, stream: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    tar.addfile(info, stream)


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
