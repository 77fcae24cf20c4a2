"""`bat bank check`: nothing to say of a sound bank, something precise of every spoilt one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bat_core.bank.blobs import copy, name_of
from bat_core.bank.check import Finding, check
from bat_core.bank.place import Place
from bat_core.bank.store import Bank, read, report_of
from bat_core.bank.tables import decode, encode
from bat_core.cli.main import main
from bat_core.config.schema import Config
from bat_core.errors import SynthesisError
from bat_core.evolve.directory import RunDirectory
from bat_core.evolve.preflight import open_preflight
from bat_core.leakage.client import Preflight
from bat_core.model.base import digest_of
from bat_core.model.message import Message
from bat_core.model.state import StageState
from bat_core.registry import load_domain

DOMAIN = load_domain("medimaging")
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def preflight(small_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preflight]:
    with RunDirectory(tmp_path_factory.mktemp("run")) as run, open_preflight(small_config, run) as preflight:
        yield preflight


@pytest.fixture
def run(small_run: Path, tmp_path: Path) -> Path:
    """A run that may be spoilt."""
    shutil.copytree(small_run / "bank", tmp_path / "run" / "bank")
    shutil.copy(small_run / "key", tmp_path / "run" / "key")
    return tmp_path / "run"


def found(run: Path, preflight: Preflight | None = None, *, full: bool = False) -> list[Finding]:
    return check(str(run / "bank"), DOMAIN, preflight, (run / "key").read_bytes(), full=full)


def rewrite(bank: Path, name: str, change: Callable[[Rows], Rows], *, sealed: bool = True) -> None:
    """Change a table; sealed, the manifest says that it belongs so."""
    data = encode(name, change(decode((bank / name).read_bytes())))
    (bank / name).write_bytes(data)
    if sealed:
        manifest = json.loads((bank / "manifest.json").read_text())
        manifest["files"][name] = digest_of(data)
        (bank / "manifest.json").write_text(json.dumps(manifest))


def test_a_sound_bank_is_clean_and_a_full_one_is_asked_for(run: Path, preflight: Preflight) -> None:
    assert found(run, preflight) == []
    empty = {one.where for one in found(run, full=True)}
    assert empty == set(report_of(run / "bank").missing) and empty


@pytest.mark.parametrize("name", ["states.parquet", "slices.parquet", "rejected.parquet", "prompts.parquet"])
def test_every_table_has_its_digest(run: Path, name: str) -> None:
    path = run / "bank" / name
    path.write_bytes(path.read_bytes()[:-9])
    assert ("digest", f"{run}/bank/{name}") in {(one.kind, one.where) for one in found(run)}
    path.unlink()
    assert any(one.where.endswith(name) and "can't be read" in one.what for one in found(run))


def test_a_column_that_says_something_else_is_named(run: Path) -> None:
    rewrite(run / "bank", "states.parquet", lambda rows: [rows[0] | {"stratum": "failure"}, *rows[1:]])
    (one,) = found(run)
    assert one == Finding("digest", f"{run}/bank/states.parquet[0]", "stratum is not what its content says")


def test_a_row_that_is_no_state_is_named(run: Path) -> None:
    rewrite(run / "bank", "states.parquet", lambda rows: [rows[0] | {"json": '{"id": 3}'}, *rows[1:]])
    kinds = {(one.kind, one.where) for one in found(run)}
    assert ("schema", f"{run}/bank/states.parquet[0]") in kinds


def test_a_lost_state_leaves_slices_counts_and_cells_behind(run: Path, bank: Bank) -> None:
    cell = next(s for s in bank.states if s.focus == "S2" and s.stratum == "recovery")
    rewrite(run / "bank", "states.parquet", lambda rows: [row for row in rows if row["id"] != cell.id])
    said = found(run)
    assert any(one.kind == "count" and "report.states" in one.what for one in said)
    assert any(one.kind == "digest" and one.where.startswith(f"slice {cell.id}") for one in said)
    assert any(one.kind == "balance" and one.where == f"S2/{cell.task.track}/recovery" for one in said)


def test_a_damaged_workspace_and_a_foreign_receipt_are_found(run: Path, bank: Bank) -> None:
    root = bank.states[3].snapshot.root
    path = run / "bank" / name_of(root)
    path.write_bytes(path.read_bytes()[:700])
    assert [one.kind for one in found(run)] == ["digest"] and "workspace" in found(run)[0].what
    path.unlink()
    assert "can't be read" in found(run)[0].what
    (run / "key").write_bytes(b"\x07" * 32)
    receipts = [one for one in found(run) if "receipts" in one.what]
    assert len(receipts) == sum(bool(state.receipts) for state in bank.states)


def test_twins_and_copies_are_found(run: Path) -> None:
    rewrite(run / "bank", "slices.parquet", lambda rows: [*rows, rows[0]])
    assert any("stands there 2 times" in one.what for one in found(run))
    rewrite(run / "bank", "prompts.parquet", lambda rows: [row | {"prompt": rows[0]["prompt"]} for row in rows])
    assert any(one.kind == "copies" and "16.7% are distinct" in one.what for one in found(run))
    rewrite(run / "bank", "prompts.parquet", lambda rows: rows[1:])
    assert any("1 tasks have no prompt there" in one.what for one in found(run))


def test_what_is_held_out_is_found_and_not_shown(run: Path, preflight: Preflight) -> None:
    from bat_medimaging.suites import heldout_tasks

    secret = heldout_tasks(1)[0].id

    def leak(rows: Rows) -> Rows:
        state = StageState.model_validate_json(rows[2]["json"])
        said = (*state.messages, Message(role="user", content=f"as in {secret}"))
        state = state.model_copy(update={"messages": said})
        return [*rows[:2], rows[2] | {"json": state.model_dump_json(), "digest": state.digest}, *rows[3:]]

    rewrite(run / "bank", "states.parquet", leak)
    leaks = [one for one in found(run, preflight) if one.kind == "leak"]
    assert leaks and "rule identifier" in leaks[0].what and ".content[6:" in leaks[0].where
    assert secret not in str(leaks)


def test_the_command_says_so_and_ends_with_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["evaluate.tasks=2", "evaluate.blind_tasks=2"]
    main_exit(["bank", "check", str(run), *few, "--json"], 0)
    assert json.loads(capsys.readouterr().out) == {"findings": []}
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    rewrite(run / "bank", "rejected.parquet", lambda rows: rows, sealed=False)
    (run / "bank" / "rejected.parquet").write_bytes(b"no parquet")
    main_exit(["bank", "check", str(run), *few], 1)
    assert "rejected.parquet" in capsys.readouterr().out
    assert set(run.rglob("*")) == set(before), "a reader leaves nothing behind"
    main_exit(["bank", "check", str(run / "nowhere"), *few], 2)
    said = capsys.readouterr().err
    assert "no complete bank" in said and said.count("\n") == 1


def main_exit(words: list[str], code: int) -> None:
    try:
        main(words)
    except SystemExit as ended:
        assert (ended.code or 0) == code, words
        return
    assert code == 0


def test_a_bank_travels_through_any_storage_and_stays_what_it_is(run: Path, bank: Bank, tmp_path: Path) -> None:
    url = f"memory://bank-{tmp_path.name}"
    assert copy(str(run / "bank"), url) == bank.report
    assert read(url).states == bank.states and read(url).slices == bank.slices
    assert check(url, DOMAIN, None, None, full=False) == []
    assert copy(url, str(tmp_path / "back")) == bank.report
    assert read(tmp_path / "back").states == bank.states, "workspaces included"
    place = Place(url)
    place.write(name_of(bank.states[0].snapshot.root), b"rot")
    assert any(one.kind == "digest" for one in check(url, DOMAIN, None, None, full=False))
    with pytest.raises(SynthesisError, match="bat bank check"):
        copy(url, str(tmp_path / "other"))
    assert not (tmp_path / "other" / "manifest.json").exists()


def test_a_place_that_nothing_reaches_is_one_line() -> None:
    with pytest.raises(SynthesisError) as caught:
        Place("nosuch://bucket/bank")
    assert "can't reach nosuch://bucket/bank" in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_in_a_place_is_whole_or_absent(tmp_path: Path) -> None:
    for place in (Place(tmp_path / "a"), Place(f"memory://{tmp_path.name}")):
        assert not place.has("x/y") and place.names("x") == []
        place.write("x/y", b"1")
        place.write("x/y", b"22")
        assert place.read("x/y") == b"22" and place.has("x/y") and place.names("x") == ["y"]
        assert place.at("x").read("y") == b"22"
        with pytest.raises(OSError):
            place.read("x/z")


def test_a_page_and_tables_show_what_is_there(run: Path, bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "<script>alert(1)</script>"
    rewrite(
        run / "bank",
        "rejected.parquet",
        lambda rows: [{"content": "c", "phase": "task", "rule": "text", "kind": "", "path": "$.id", "start": 0,
                       "end": 1, "reason": hostile, "cell": ""}],
    )  # fmt: skip
    page = run / "page.html"
    main_exit(["bank", "show", str(run), "--page", str(page)], 0)
    shown = capsys.readouterr().out
    assert f"{len(bank.states)} states" in shown and "100.0% of the prompts distinct" in shown
    assert "S5/segmentation/recovery" in shown and "[100%]" not in shown
    text = page.read_text()
    assert hostile not in text and "&lt;script&gt;" in text and bank.report.digest in text
    assert "http" not in text.replace("https://", "").lower() or "src=" not in text, "self-contained"
    for cell in bank.report.missing:
        assert cell in text
    assert "<details>" in text and "phx.brief()" in text
