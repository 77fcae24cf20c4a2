from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bat_core.bank.store import Bank, discard, read, read_manifest, read_rejections, write
from bat_core.bank.tables import Rejection
from bat_core.errors import BatError, SnapshotMismatch, SynthesisError


@pytest.fixture
def copy(small_run: Path, tmp_path: Path) -> Path:
    """A bank that may be spoilt."""
    return Path(shutil.copytree(small_run / "bank", tmp_path / "bank"))


def one_line(error: BaseException) -> str:
    assert isinstance(error, BatError) and error.remedy and "\n" not in str(error)
    return str(error)


def test_what_is_written_is_read(bank: Bank, tmp_path: Path, copy: Path) -> None:
    rejected = [Rejection("sha256:0", "task", "identifier", "identifier", "$.id", 1, 4, "why")]
    report = write(copy, bank.states, bank.slices, rejected, tasks=7)
    again = read(copy)
    assert (again.states, again.slices, again.report) == (bank.states, bank.slices, report)
    assert (report.tasks, report.states, report.slices, report.rejected) == (7, len(bank.states), len(bank.slices), 1)
    assert report.rejections == {"identifier": 1} and sum(report.cells.values()) == len(bank.states)
    assert read_rejections(copy) == [vars(rejected[0])]
    assert report.digest == bank.report.digest, "what was refused is no part of a bank's identity"
    assert [path.name for path in copy.iterdir() if path.suffix == ".partial"] == []


def test_the_digest_is_that_of_states_and_slices(bank: Bank, copy: Path) -> None:
    digests = {
        bank.report.digest,
        write(copy, bank.states[:-1], bank.slices, [], 1).digest,
        write(copy, bank.states, bank.slices[:-1], [], 1).digest,
        write(copy, [*bank.states[1:], bank.states[0]], bank.slices, [], 1).digest,
    }
    assert len(digests) == 4


def test_other_keys_of_receipts_make_no_other_bank(bank: Bank, copy: Path) -> None:
    other = [
        state.model_copy(update={"receipts": tuple(r.model_copy(update={"mac": "0" * 64}) for r in state.receipts)})
        for state in bank.states
    ]
    assert write(copy, other, bank.slices, [], 1).digest == bank.report.digest


@pytest.mark.parametrize("name", ["states.parquet", "slices.parquet", "rejected.parquet"])
def test_a_truncated_table_is_named(copy: Path, name: str) -> None:
    path = copy / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SynthesisError) as caught:
        read(copy)
    assert str(path) in one_line(caught.value) and "is damaged" in str(caught.value)
    path.unlink()
    with pytest.raises(SynthesisError) as caught:
        read(copy)
    assert str(path) in one_line(caught.value) and "can't be read" in str(caught.value)


@pytest.mark.parametrize("spoil", ["truncate", "flip", "remove"])
def test_a_damaged_snapshot_is_named(copy: Path, bank: Bank, spoil: str) -> None:
    digest = bank.states[3].snapshot.root.removeprefix("sha256:")
    path = copy / "snapshots" / digest[:2] / f"{digest}.tar"
    data = bytearray(path.read_bytes())
    if spoil == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif spoil == "flip":
        data[600] ^= 1
        path.write_bytes(data)
    else:
        path.unlink()
    with pytest.raises(SnapshotMismatch) as caught:
        read(copy)
    assert str(path) in one_line(caught.value)


def test_a_folder_without_a_manifest_is_no_bank(copy: Path) -> None:
    (copy / "manifest.json").write_text('{"files": {')
    with pytest.raises(SynthesisError, match="no complete bank"):
        read_manifest(copy)
    (copy / "manifest.json").unlink()
    with pytest.raises(SynthesisError) as caught:
        read(copy)
    assert str(copy) in one_line(caught.value)
    discard(copy)
    discard(copy)
    assert not copy.exists()


@pytest.mark.parametrize("text", ["[]", "{}", '{"files": {}}', '{"files": {"states.parquet": 1}, "report": {}}'])
def test_a_manifest_that_says_something_else_is_damaged(copy: Path, text: str) -> None:
    (copy / "manifest.json").write_text(text)
    with pytest.raises(SynthesisError) as caught:
        read(copy)
    assert str(copy) in one_line(caught.value)


def test_an_empty_bank_can_be_written_and_read(tmp_path: Path) -> None:
    report = write(tmp_path, [], [], [], 0)
    assert (report.states, report.cells, report.rejections) == (0, {}, {})
    again = read(tmp_path)
    assert not again.states and not again.slices and read_rejections(tmp_path) == []


def test_other_tools_can_read_the_tables(small_run: Path, bank: Bank, tmp_path: Path) -> None:
    import datasets

    folder = small_run / "bank"
    files = {name: str(folder / f"{name}.parquet") for name in ("states", "slices")}
    for name, file in files.items():
        loaded = datasets.load_dataset("parquet", data_files=file, split="train", cache_dir=str(tmp_path))
        rows = loaded.to_list()
        whole: list[object] = list(bank.states if name == "states" else bank.slices)
        assert [type(whole[0]).model_validate_json(row["json"]) for row in rows] == whole  # type: ignore[attr-defined]
    assert loaded.column_names == ["id", "trajectory", "stage", "source", "digest", "json"]


def test_a_row_of_the_table_says_what_it_is(small_run: Path, bank: Bank) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(small_run / "bank" / "states.parquet").to_pylist()
    for row, state in zip(rows, bank.states, strict=True):
        assert (row["id"], row["focus"], row["stratum"]) == (state.id, state.focus, state.stratum.value)
        assert (row["digest"], row["snapshot"]) == (state.digest, state.snapshot.root)
    manifest = json.loads((small_run / "bank" / "manifest.json").read_text())
    assert manifest["report"]["digest"] == bank.report.digest
