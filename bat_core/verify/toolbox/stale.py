"""Staleness: artifacts that this rollout did not make, or made before what they are made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from bat_core.verify.toolbox.ledger import Event, writers


class Files(Protocol):
    """Anything that gives the content of a path, or None."""

    def get(self, path: str, /) -> bytes | None:
        """Return the content of `path`."""


def fresh(start: Files, files: Files, path: str) -> bool:
    """Return whether the rollout made or changed the file at `path`."""
    now = files.get(path)
    return now is not None and now != start.get(path)


def outdated(events: Sequence[Event], path: str, sources: Iterable[str]) -> str:
    """Return which source was written after `path` was last written; empty if none is known to."""
    made = writers(events, path)
    if not made:
        return ""
    later = [one for one in sources if any(event.seq > made[-1].seq for event in writers(events, one))]
    return f"{later[0]} was written after {path}" if later else ""


def before_run(stamp: str, started: str) -> bool:
    """Return whether a time stamp lies before the start of the run; one that can't be read does not count as before."""
    try:
        return datetime.fromisoformat(stamp) < datetime.fromisoformat(started)
    except (ValueError, TypeError):
        return False
