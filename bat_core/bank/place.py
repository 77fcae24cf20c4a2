"""Where a bank lies: a folder here or anywhere that fsspec reaches; a file there is whole or absent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bat_core.errors import SynthesisError


class Place:
    """A folder, by path or URL.

    Args:
        where: Such as `runs/demo/bank`, `s3://bucket/bank` or `memory://bank`.

    Raises:
        SynthesisError: If nothing installed can reach it.
    """

    def __init__(self, where: str | Path) -> None:
        import fsspec

        try:
            self._fs, root = fsspec.core.url_to_fs(str(where))
        except (ValueError, ImportError) as error:
            said = " ".join(str(error).split())
            raise SynthesisError(
                f"can't reach {where}: {said}", remedy="install the fsspec driver of that kind"
            ) from error
        self._root = root.rstrip("/")
        self.name = str(where).rstrip("/")

    def __str__(self) -> str:
        return self.name

    @property
    def is_local(self) -> bool:
        """Whether it lies in this machine's file system."""
        return "file" in (self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,))

    @property
    def folder(self) -> Path:
        """The folder itself, where it is local."""
        assert self.is_local, self.name
        return Path(self._root)

    def at(self, *parts: str) -> Place:
        """Return a folder below this one."""
        return Place("/".join((self.name, *parts)))

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises `OSError` if it can't be had."""
        data: bytes = self._fs.cat_file(f"{self._root}/{name}")
        return data

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self._fs.isfile(f"{self._root}/{name}"))

    def names(self, below: str = "") -> list[str]:
        """Return the names directly below, sorted; nothing where there is no such folder."""
        try:
            found: list[Any] = self._fs.ls(f"{self._root}/{below}".rstrip("/"), detail=False)
        except OSError:
            return []
        return sorted(str(one).rstrip("/").rpartition("/")[2] for one in found)

    def write(self, name: str, data: bytes) -> None:
        """Write a file that appears only when complete: object stores do so by themselves, folders by renaming."""
        if not self.is_local:
            self._fs.pipe_file(f"{self._root}/{name}", data)
            return
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial")
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
