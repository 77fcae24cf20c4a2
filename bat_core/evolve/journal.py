"""The journal: every finished phase and decision in one transaction each; the only truth about how far a run is."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bat_core.errors import RunError
from bat_core.model.base import JsonObject, canonical_json

SCHEMA = 1
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    seconds REAL NOT NULL
);
"""


class Journal:
    """Appends entries; an entry that is there is never written again.

    Args:
        path: SQLite file; made if missing.

    Raises:
        RunError: If the file is damaged or of another schema version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._explained():
            self._db = sqlite3.connect(path, isolation_level=None)
        try:
            found = self._opened()
        except RunError:
            self._db.close()
            raise
        if found != str(SCHEMA):
            self._db.close()
            raise RunError(
                f"{path} has schema {found}, this bat-core writes {SCHEMA}", remedy="start a new run with --run"
            )

    def _opened(self) -> str | None:
        """Return the schema's version, having created the tables where there are none."""
        with self._explained():
            self._db.execute("PRAGMA synchronous=FULL")
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name='meta'").fetchone():
                self._db.executescript(f"BEGIN; {TABLES} INSERT INTO meta VALUES ('schema', '{SCHEMA}'); COMMIT;")
            return self.meta("schema")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what SQLite or JSON can't read or write into an error with a remedy."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise RunError(f"{self._path} can't be used: {error}", remedy="check the disk and its rights") from error
        except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
            raise RunError(f"{self._path} is damaged: {error}", remedy="start a new run with --run") from error

    def meta(self, key: str) -> str | None:
        """Return a property of the run, None if it isn't set."""
        with self._explained():
            row = self._db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Set a property that has not been set."""
        with self._explained():
            self._db.execute("INSERT INTO meta VALUES (?, ?)", (key, value))

    def get(self, key: str) -> JsonObject | None:
        """Return the entry called `key`, None if that phase isn't finished."""
        with self._explained():
            row = self._db.execute("SELECT payload FROM entries WHERE key=?", (key,)).fetchone()
            return None if row is None else json.loads(row[0])

    def once(self, key: str, work: Callable[[], JsonObject]) -> JsonObject:
        """Return the entry called `key`; if it is missing, do the work and append it. Same value either way."""
        found = self.get(key)
        if found is not None:
            return found
        began = time.monotonic()
        text = canonical_json(work())
        values = (key, text, time.monotonic() - began)
        with self._explained():
            self._db.execute("INSERT INTO entries (key, payload, seconds) VALUES (?, ?, ?)", values)
        fresh: JsonObject = json.loads(text)
        return fresh

    def entries(self) -> list[tuple[str, JsonObject]]:
        """Return all entries in order."""
        with self._explained():
            rows = self._db.execute("SELECT key, payload FROM entries ORDER BY id").fetchall()
            return [(key, json.loads(payload)) for key, payload in rows]

    def seconds(self) -> dict[str, float]:
        """Return seconds by kind of phase (the part of the key before `:`), over all sittings."""
        totals: dict[str, float] = {}
        with self._explained():
            rows = self._db.execute("SELECT key, seconds FROM entries ORDER BY id").fetchall()
        for key, seconds in rows:
            kind = key.partition(":")[0]
            totals[kind] = totals.get(kind, 0.0) + seconds
        return {kind: round(total, 2) for kind, total in totals.items()}

    def close(self) -> None:
        """Close the file."""
        self._db.close()
