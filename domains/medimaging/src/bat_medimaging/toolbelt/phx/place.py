"""Where files are: the workspace as a mapping from path to bytes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

Json = dict[str, Any]

LARGEST = 4 << 20


class Files(Protocol):
    """Anything from which a file's content can be asked: a workspace on disk, or a sealed one."""

    def get(self, path: str, /) -> bytes | None:
        """Return the content of `path`, None where there is no such regular file."""


class Workspace:
    """The workspace on disk."""

    def __init__(self) -> None:
        self.root = Path(os.environ.get("PHX_ROOT", "."))

    def get(self, path: str, /) -> bytes | None:
        """Return the content of `path`, None where there is no such regular file of a sane size."""
        file = self.root / path
        try:
            if not file.is_file() or file.stat().st_size > LARGEST:
                return None
            return file.read_bytes()
        except (OSError, ValueError):
            return None

    def put(self, path: str, data: bytes | str) -> None:
        """Write `data` to `path`, with its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)

    def put_json(self, path: str, value: object) -> None:
        """Write `value` as sorted JSON."""
        self.put(path, json.dumps(value, sort_keys=True, indent=1) + "\n")


def json_of(files: Files, path: str) -> Json:
    """Return the JSON object in `path`; empty where it is missing, too large, too deep or not an object."""
    data = files.get(path)
    if data is None or len(data) > 1 << 16:
        return {}
    try:
        value = json.loads(data, parse_int=_whole, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and _shallow(value, 4) else {}


def _whole(digits: str) -> float | int:
    """Return an integer; one that no float can hold would break comparisons far from here."""
    return int(digits) if len(digits) < 16 else float(digits)


def _shallow(value: object, levels: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_shallow(part, levels - 1) for part in parts)


def text_of(files: Files, path: str, limit: int = 1 << 16) -> str:
    """Return the text in `path`, empty where there is none."""
    data = files.get(path)
    return "" if data is None else data[:limit].decode("utf-8", "replace")


def task_of(files: Files) -> Json:
    """Return the public task."""
    return json_of(files, "data/task.json")


def words(value: object) -> list[str]:
    """Return the words of a string or list, whatever the separators."""
    if isinstance(value, (list, tuple)):
        value = " ".join(str(part) for part in value)
    return str(value).replace(",", " ").split()


def short(value: object) -> str:
    """Return a number with one digit at most, anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{float(value):.1f}".removesuffix(".0") if abs(value) >= 10 else f"{float(value):.1f}"
