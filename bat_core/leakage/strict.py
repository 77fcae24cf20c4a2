"""JSON in which no key stands twice: of two values for one key, a check would see only one."""

from __future__ import annotations

import json
from typing import Any


class DuplicateKey(ValueError):
    """An object has a key twice."""


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        DuplicateKey: An object has a key twice.
        ValueError, RecursionError: It isn't JSON, or nested deeper than the parser goes.
    """
    return _DECODER.decode(text if isinstance(text, str) else text.decode("utf-8"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise DuplicateKey("a key stands twice in an object")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
