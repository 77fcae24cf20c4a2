"""Executor: where embarrassingly parallel work runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any


class Executor(ABC):
    """Maps a named function over values; only names and picklable values cross, never objects."""

    @abstractmethod
    def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
        """Yield `name(item)` in order of items; `name` is `module:function`. Errors propagate."""

    @abstractmethod
    def close(self) -> None:
        """End all workers. Idempotent."""
