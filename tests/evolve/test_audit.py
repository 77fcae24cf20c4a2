from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bat_core.bank.store import read
from bat_core.errors import LeakageError
from bat_core.evolve.audit import audit_run
from bat_core.leakage.building import build_index
from bat_core.leakage.keys import VARIABLE


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def index_of(tmp_path: Path, *texts: str) -> Path:
    rows = [{"item_id": str(n), "task": str(n), "kind": "prompt", "text": text} for n, text in enumerate(texts)]
    source, path = tmp_path / "items.json", tmp_path / "run.idx"
    source.write_text(json.dumps(rows))
    build_index(source, None, path)
    return path


def test_a_clean_run_passes_and_all_of_it_is_looked_at(small_run: Path, tmp_path: Path) -> None:
    index = index_of(tmp_path, "Trace the rim of the copper basin on every second frame, then report its depth.")
    said = audit_run(small_run, index)
    bank = read(small_run / "bank")
    assert said["samples"] == []
    assert said["looked_at"]["states"] == len(bank.states)
    assert said["looked_at"]["slices"] == len(bank.slices)
    assert said["looked_at"]["files"] > len({state.snapshot.root for state in bank.states})
    assert said["counts"]["pass"] == sum(said["looked_at"].values())


def test_what_a_run_was_trained_on_is_found_in_states_and_slices(small_run: Path, tmp_path: Path) -> None:
    state = read(small_run / "bank").states[0]
    prompt = next(message.content for message in state.messages if message.role == "user")
    said = audit_run(small_run, index_of(tmp_path, prompt))
    kinds = {row["id"].split()[0] for row in said["samples"] if row["verdict"] == "block"}
    assert {"state", "slice"} <= kinds


def test_a_run_without_a_bank_is_an_error(small_run: Path, tmp_path: Path) -> None:
    index = index_of(tmp_path, "Trace the rim of the copper basin on every second frame, then report its depth.")
    copy = tmp_path / "copy"
    shutil.copytree(small_run, copy)
    (copy / "bank" / "manifest.json").unlink()
    with pytest.raises(Exception, match="no complete bank"):
        audit_run(copy, index)
    with pytest.raises(LeakageError, match="needs both"):
        audit_run(small_run, index, encoder=tmp_path)
