"""A layer of an image, written as the same bytes whenever its content is the same."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from bat_core.sandboxes.docker.bytecode import compiled


@dataclass(frozen=True)
class _Item:
    kind: str
    source: str = ""
    data: bytes = b""
    mode: int = 0o644


class Tar(NamedTuple):
    """A written tar and `sha256:<hex>` of it."""

    stream: IO[bytes]
    digest: str


@dataclass
class Layer:
    """Paths of an image and where their content comes from; the first to claim a path keeps it."""

    items: dict[str, _Item] = field(default_factory=dict)
    _tar: Tar | None = None

    def folder(self, path: str, mode: int = 0o755) -> None:
        """Add a folder, with those above it."""
        self._add(path, _Item("dir", mode=mode))

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(path, _Item("link", target))

    def data(self, path: str, data: bytes) -> None:
        """Add a file with this content."""
        self._add(path, _Item("data", data=data))

    def file(self, path: str, source: Path, *, executable: bool | None = None) -> None:
        """Add a file of the host, executable as it is there unless said otherwise."""
        runs = os.access(source, os.X_OK) if executable is None else executable
        self._add(path, _Item("file", str(source), mode=0o755 if runs else 0o644))

    def _add(self, path: str, item: _Item) -> None:
        parts = os.path.normpath(path).strip("/").split("/")
        for count in range(1, len(parts)):
            self.items.setdefault("/".join(parts[:count]), _Item("dir", mode=0o755))
        self.items.setdefault("/".join(parts), item)

    def outline(self) -> str:
        """Return one line a path, with size and time of sources instead of their content."""
        lines = []
        for path, item in sorted(self.items.items()):
            stamp = ""
            if item.kind == "file":
                status = Path(item.source).stat()
                stamp = f"{status.st_size} {status.st_mtime_ns}"
            lines.append(f"{path}\0{item.kind}\0{item.source}\0{item.data!r}\0{item.mode}\0{stamp}\n")
        return "".join(lines)

    def tar(self) -> Tar:
        """Return the layer's tar, byte code of Python sources included; it is written once."""
        if self._tar is None:
            stream = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the layer
            self._tar = Tar(stream, self._write(stream))
        return self._tar

    def _write(self, stream: IO[bytes]) -> str:
        sink = _Hashing(stream)
        sources = {path: item.source for path, item in self.items.items() if path.endswith(".py") and item.source}
        with tarfile.open(fileobj=sink, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted(self.items):
                _write(tar, path, self.items[path])
            for path, code in compiled(sources):
                self._write_code(tar, path, code)
        return f"sha256:{sink.digest.hexdigest()}"

    def _write_code(self, tar: tarfile.TarFile, path: str, code: bytes) -> None:
        above = path.rpartition("/")[0]
        if above not in self.items:
            self.items[above] = _Item("dir", mode=0o755)
            _write(tar, above, self.items[above])
        _write(tar, path, _Item("data", data=code))


def _write(tar: tarfile.TarFile, path: str, item: _Item) -> None:
    info = tarfile.TarInfo(path)
    info.mode = item.mode
    if item.kind == "dir":
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif item.kind == "link":
        info.type, info.linkname = tarfile.SYMTYPE, item.source
        tar.addfile(info)
    elif item.kind == "data":
        info.size = len(item.data)
        tar.addfile(info, io.BytesIO(item.data))
    else:
        with Path(item.source).open("rb") as source:
            info.size = os.fstat(source.fileno()).st_size
            tar.addfile(info, source)


class _Hashing(io.RawIOBase):
    """A stream that hashes what goes through it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Pass on and hash."""
        self.digest.update(data)
        return self._stream.write(data)
