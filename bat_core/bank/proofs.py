"""Proofs that no known cheat pays: per track, fault and version once, kept in the cache of this machine's user."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from bat_core.model.base import digest_of
from bat_core.model.task import Task

Family = tuple[str, str]
"""Track and fault; the fault is empty where nothing is wrong."""


def families(task: Task) -> set[Family]:
    """Return the families that a task belongs to."""
    return {(task.track, fault) for fault in task.faults or ("",)}


class Proofs:
    """Which families stand proven under a version of the code.

    Args:
        folder: Where proofs are kept; None keeps none, so that every bank proves its own.
        version: Digest of domain, core and the way in which tasks are solved.
    """

    def __init__(self, folder: Path | None, version: str) -> None:
        self._path = folder / f"{digest_of(version)[7:39]}.json" if folder is not None else None
        self._proven = self._read()

    def carriers(self, tasks: Sequence[Task]) -> set[str]:
        """Return the ids of few tasks which together belong to every family that is not proven yet."""
        open_ = {family for task in tasks for family in families(task)} - self._proven
        chosen: set[str] = set()
        while open_:
            best = max(tasks, key=lambda task: len(families(task) & open_))  # the first of equals
            chosen.add(best.id)
            open_ -= families(best)
        return chosen

    def add(self, proven: Iterable[Family]) -> None:
        """Keep what was proven."""
        self._proven |= set(proven)
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps(sorted(self._proven)))
        partial.replace(self._path)

    def _read(self) -> set[Family]:
        try:
            found = json.loads(self._path.read_text()) if self._path is not None else []
            return {(str(track), str(fault)) for track, fault in found}
        except (OSError, ValueError, TypeError):
            return set()
