"""Sweeping the content store: workspaces that no admitted state begins in leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterable

from bat_core.model.state import StageState
from bat_core.sandboxes.snapshots import SnapshotStore


def sweep(store: SnapshotStore, states: Iterable[StageState]) -> int:
    """Remove every workspace but those in which `states` begin; return how many went.

    Contents are shared: a workspace stays as long as one admitted state begins in it, whoever else was rejected with
    it. Gone are those of rejected states, those in which expert runs ended, and halves that a crash has left.
    """
    keep = {store.path(state.snapshot.root) for state in states}
    gone = [path for path in store.folder.glob("*/*") if path.is_file() and path not in keep]
    for path in gone:
        path.unlink()
    return len(gone)
