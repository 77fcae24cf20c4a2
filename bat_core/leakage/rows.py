"""Samples from a file of JSON lines, checked as they stream: each line gets a verdict, whatever stands in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bat_core.errors import LeakageError
from bat_core.leakage.panel import Panel
from bat_core.leakage.strict import DuplicateKey, loads
from bat_core.model.leakage import Checked, LeakageFinding

MAX_LINE = 32 * 1024 * 1024
"""Bytes of a line; a longer one is not read, thus rejected."""
CHUNK = 1024 * 1024
"""Bytes of lines that are checked together."""


class Line(NamedTuple):
    """A line and its number; None in place of one that is too long."""

    number: int
    data: bytes | None


def chunks(path: Path) -> Iterator[list[Line]]:
    """Yield the lines of a file that aren't blank, a chunk at a time.

    Raises:
        LeakageError: The file can't be read, or there is nothing in it.
    """
    try:
        with path.open("rb") as file:
            yield from _chunks(file, path)
    except OSError as error:
        raise LeakageError(f"can't read {path} ({error.strerror})", remedy="check the name") from error


def _chunks(file: BinaryIO, path: Path) -> Iterator[list[Line]]:
    chunk: list[Line] = []
    size, any_line = 0, False
    for line in _lines(file):
        chunk.append(line)
        size += len(line.data or b"")
        if size >= CHUNK:
            yield chunk
            chunk, size, any_line = [], 0, True
    if chunk:
        yield chunk
    elif not any_line:
        raise LeakageError(f"{path} holds no samples", remedy="give a file with one JSON object a line")


def _lines(file: BinaryIO) -> Iterator[Line]:
    number = 0
    while data := file.readline(MAX_LINE + 1):
        number += 1
        if len(data) > MAX_LINE:
            while data and not data.endswith(b"\n"):
                data = file.readline(MAX_LINE)
            yield Line(number, None)
            continue
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if data.strip():
            yield Line(number, data)


def check_lines(panel: Panel, lines: Iterable[Line]) -> list[Checked]:
    """Return a verdict for each line, in order."""
    read = [_row(line) for line in lines]
    answers = iter(panel.check_all([row for row in read if not isinstance(row, Checked)]))
    return [row if isinstance(row, Checked) else next(answers) for row in read]


def _row(line: Line) -> tuple[str, Any] | Checked:
    """Return the id and value of a line, or its rejection."""
    if line.data is None:
        return _rejected(line, f"longer than {MAX_LINE // 1024 // 1024} MB; split it, or leave it out of training")
    try:
        value = loads(line.data)
    except DuplicateKey:
        return _rejected(line, "a key stands twice in an object, so one of its values could not be checked")
    except UnicodeDecodeError as error:
        return _rejected(line, f"not UTF-8 (byte {error.start})")
    except RecursionError:
        return _rejected(line, "nested too deep to be checked")
    except (ValueError, MemoryError) as error:
        return _rejected(line, f"not JSON (character {getattr(error, 'pos', 0)})")
    if not isinstance(value, dict):
        return _rejected(line, "not an object with an id")
    return _name(value, line), value


def _name(value: dict[str, Any], line: Line) -> str:
    name = value.get("id")
    if isinstance(name, str | int | float) and not isinstance(name, bool) and name != "":
        return str(name)
    return f"line {line.number}"


def _rejected(line: Line, reason: str) -> Checked:
    finding = LeakageFinding(rule="row", reason=f"line {line.number}: {reason}")
    return Checked(id=f"line {line.number}", verdict="block", findings=(finding,))
