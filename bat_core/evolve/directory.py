"""A run's directory: paths, lock, receipt key, and whether it still belongs to this configuration."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from bat_core.errors import RunError
from bat_core.evolve.journal import Journal


class RunDirectory:
    """A run on disk. Use as a context manager: it is locked while open.

    Args:
        path: The directory.

    Raises:
        RunError: If another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = self._acquire()
        try:
            self.journal = Journal(path / "journal.sqlite")
        except RunError:
            self._lock.close()
            raise

    def _acquire(self) -> IO[str]:
        lock = (self.path / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            lock.close()
            raise RunError(
                f"{self.path} is in use by {holder}", remedy="wait for it, or choose another --run"
            ) from error
        lock.truncate(0)
        lock.write(f"pid {os.getpid()} on {socket.gethostname()}")
        lock.flush()
        return lock

    @property
    def bank(self) -> Path:
        """Folder of the Stage Bank."""
        return self.path / "bank"

    @property
    def snapshots(self) -> Path:
        """Content store of the bank's snapshots and of rollouts."""
        return self.path / "bank" / "snapshots"

    @property
    def evaluator(self) -> Path:
        """The evaluator's own folder."""
        return self.path / "evaluator"

    def round(self, number: int) -> Path:
        """Folder of a round."""
        return self.path / "rounds" / f"{number:02d}"

    def key(self) -> bytes:
        """Return the run's secret for receipts, made when first needed; readable by the owner only."""
        path = self.path / "key"
        if not path.exists():
            partial = path.with_name("key.partial")
            partial.touch(mode=0o600)
            partial.write_bytes(secrets.token_bytes(32))
            partial.rename(path)
        return path.read_bytes()

    def bind(self, digests: Mapping[str, str]) -> None:
        """Tie the run to digests (configuration, plugins), or check that it is the same run.

        Raises:
            RunError: If one differs; says which.
        """
        for name, digest in digests.items():
            before = self.journal.meta(name)
            if before is None:
                self.journal.set_meta(name, digest)
            elif before != digest:
                raise RunError(
                    f"{self.path} was begun with another {name} ({before[:19]}, now {digest[:19]})",
                    remedy="give the old settings back, or choose another --run",
                )

    def discard(self, folder: Path) -> None:
        """Remove half-written work."""
        for path in (folder, folder.with_name(folder.name + ".partial"), folder.with_name(folder.name + ".scratch")):
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Unlock and close."""
        self.journal.close()
        self._lock.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that the file is either old or new, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(value, indent=1) + "\n")
    partial.replace(path)
