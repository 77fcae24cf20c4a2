from __future__ import annotations

import math
import sqlite3
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bat_core.errors import RunError
from bat_core.evolve.journal import SCHEMA, Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_work_is_done_once(path: Path) -> None:
    journal, calls = Journal(path), []

    def work() -> dict[str, int]:
        calls.append(1)
        return {"n": len(calls)}

    assert journal.once("bank", work) == {"n": 1}
    assert journal.once("bank", work) == {"n": 1}
    journal.close()
    again = Journal(path)
    assert again.once("bank", work) == {"n": 1} and len(calls) == 1
    assert again.entries() == [("bank", {"n": 1})]
    again.close()


def test_work_that_crashes_leaves_no_entry_and_is_done_again(path: Path) -> None:
    journal = Journal(path)

    def crash() -> dict[str, int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        journal.once("train:1", crash)
    assert journal.get("train:1") is None and journal.entries() == []
    assert journal.once("train:1", lambda: {"reward": 0.0}) == {"reward": 0.0}
    assert journal.once("train:1", crash) == {"reward": 0.0}, "a zero is a result: it is not done again"


def test_what_can_not_be_kept_is_not_half_kept(path: Path) -> None:
    journal = Journal(path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        journal.once("train:1", lambda: {"loss": math.nan})
    assert journal.get("train:1") is None


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 8))
def test_an_interrupted_sequence_ends_like_an_undisturbed_one(
    tmp_path_factory: pytest.TempPathFactory, keys: list[int], crash_at: int
) -> None:
    def sitting(path: Path, stop: int) -> None:
        journal = Journal(path)
        for number, key in enumerate(keys):
            if number == stop:
                break
            journal.once(f"k:{key}", partial(dict, square=key * key))
        journal.close()

    folder = tmp_path_factory.mktemp("j")
    sitting(folder / "a", 99)
    sitting(folder / "b", crash_at)
    sitting(folder / "b", 99)
    one, other = Journal(folder / "a"), Journal(folder / "b")
    assert one.entries() == other.entries()
    one.close()
    other.close()


def test_seconds_add_up_over_sittings(path: Path) -> None:
    journal = Journal(path)
    for number in range(3):
        journal.once(f"train:{number}", dict)
    journal.once("bank", dict)
    journal._db.execute("UPDATE entries SET seconds = 0.004")
    assert journal.seconds() == {"train": 0.01, "bank": 0.0}


def test_a_property_is_set_once(path: Path) -> None:
    journal = Journal(path)
    assert journal.meta("configuration") is None
    journal.set_meta("configuration", "x")
    assert journal.meta("configuration") == "x"
    with pytest.raises(RunError):
        journal.set_meta("configuration", "y")


def test_another_schema_is_refused(path: Path) -> None:
    Journal(path).close()
    db = sqlite3.connect(path)
    db.execute("UPDATE meta SET value='99' WHERE key='schema'")
    db.commit()
    db.close()
    with pytest.raises(RunError) as caught:
        Journal(path)
    assert str(caught.value) == f"{path} has schema 99, this bat-core writes {SCHEMA}; start a new run with --run"


@pytest.mark.parametrize("spoil", ["garbage", "middle", "payload"])
def test_a_damaged_file_is_named(path: Path, spoil: str) -> None:
    journal = Journal(path)
    for number in range(20):
        journal.once(f"k:{number}", lambda: {"text": "x" * 3000})
    journal.close()
    data = bytearray(path.read_bytes())
    if spoil == "garbage":
        data = bytearray(b"not a database, not at all" * 99)
    elif spoil == "middle":
        data[8192:-4096] = b"\x5a" * (len(data) - 12288)
    path.write_bytes(bytes(data))
    if spoil == "payload":
        db = sqlite3.connect(path)
        db.execute("UPDATE entries SET payload='{\"half\": '")
        db.commit()
        db.close()
    with pytest.raises(RunError, match=rf"{path} is damaged: .*; start a new run with --run"):
        damaged = Journal(path)
        damaged.get("k:19")
        damaged.entries()


def test_a_full_disk_is_an_error_with_a_remedy(path: Path) -> None:
    journal = Journal(path)
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(RunError, match="can't be used: database or disk is full; check the disk and its rights"):
        journal.once("bank", lambda: {"text": "x" * 100_000})
    assert journal.get("bank") is None
