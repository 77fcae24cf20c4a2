"""Schema: reading what an agent wrote, strictly. Odd files are a reason, never an exception."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)
LARGEST = 1 << 20
DEEPEST = 32


@dataclass(frozen=True)
class Read(Generic[M]):
    """What was read, or why it was not."""

    value: M | None
    reason: str = ""


def read_json(data: bytes | None, largest: int = LARGEST) -> tuple[Any, str]:
    """Return strictly parsed JSON and an empty reason, or None and why not.

    Refused: what is missing, not UTF-8, too large or too deep, holds a key twice, NaN or Infinity.
    """
    if data is None:
        return None, "missing"
    if len(data) > largest:
        return None, f"larger than {largest} bytes"
    try:
        return json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite), ""
    except RecursionError:
        return None, "too deep"
    except ValueError as error:
        return None, f"not strict JSON: {str(error)[:80]}"


def read_as(data: bytes | None, model: type[M], largest: int = LARGEST) -> Read[M]:
    """Return `data` as a value of `model`, or why it is none."""
    found, reason = read_json(data, largest)
    if reason:
        return Read(None, reason)
    if _depth(found) > DEEPEST:
        return Read(None, "too deep")
    try:
        return Read(model.model_validate_json(data or b"", strict=True))
    except ValidationError as error:
        first = error.errors()[0]
        return Read(None, f"{'.'.join(str(part) for part in first['loc']) or 'top'}: {first['msg'].lower()}"[:120])


def read_rows(data: bytes | None, columns: tuple[str, ...], most: int = 10_000) -> tuple[list[tuple[str, ...]], str]:
    """Return the rows of a plain comma-separated file with exactly these columns, or why they can't be had.

    Refused: quotes, formulas, control characters, rows of another width, more than `most` rows.
    """
    if data is None:
        return [], "missing"
    try:
        lines = [line for line in data.decode().splitlines() if line.strip()]
    except UnicodeDecodeError:
        return [], "not UTF-8"
    if not lines or tuple(cell.strip() for cell in lines[0].split(",")) != columns:
        return [], f"the first line is not {','.join(columns)}"
    if len(lines) - 1 > most:
        return [], f"more than {most} rows"
    rows = [tuple(cell.strip() for cell in line.split(",")) for line in lines[1:]]
    odd = next((row for row in rows if len(row) != len(columns) or any(_odd(cell) for cell in row)), None)
    return ([], f"odd row {','.join(odd)[:40]!r}") if odd is not None else (rows, "")


def repeated(keys: list[str]) -> list[str]:
    """Return the keys that occur more than once."""
    return sorted({key for key in keys if keys.count(key) > 1})


def _odd(cell: str) -> bool:
    return cell[:1] in "=+@\"'" if cell else True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice")
    return out


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _depth(value: Any) -> int:
    level, layer = 0, [value]
    while layer:
        level += 1
        layer = [
            inner
            for one in layer
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return level
