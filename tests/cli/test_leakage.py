from __future__ import annotations

import json
from pathlib import Path

import pytest

from bat_core.cli.main import main
from bat_core.leakage.keys import VARIABLE

ITEMS = [
    {"item_id": "a", "task": "t1", "kind": "task_id", "text": "QRX-7731-OBOE-58"},
    {"item_id": "w", "task": "t1", "kind": "task_id", "text": "case-12"},
    {"item_id": "n", "task": "t1", "kind": "answer_num", "text": "0.8731", "topic": "rim of the copper basin"},
]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    source = tmp_path / "heldout.json"
    source.write_text(json.dumps({"items": ITEMS}))
    path = tmp_path / "quarry.idx"
    assert run("leakage", "index", str(source), "-o", str(path)) == 0
    return path


def run(*words: str) -> int:
    try:
        main(list(words))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def samples(tmp_path: Path, *rows: object) -> str:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_index_says_what_it_covers_and_refuses(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run("leakage", "index", str(index.with_name("heldout.json")), "-o", str(index)) == 0
    said = capsys.readouterr().out
    assert "identifier   covers 1 items" in said
    assert "refused w (task_id): too generic" in said
    assert "7731" not in said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_check_as_json(workers: str, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = samples(
        tmp_path,
        {"id": "one", "messages": [{"role": "user", "content": "quiet"}]},
        {"id": "two", "note": {"text": "see qrx 7731 oboe 58"}},
        {"id": "three", "text": "the rim of the copper basin is 87.31 %"},
    )
    capsys.readouterr()
    assert run("leakage", "check", file, "--index", str(index), "--json", "--workers", workers) == 1
    said = json.loads(capsys.readouterr().out)
    assert [(row["id"], row["verdict"]) for row in said["samples"]] == [
        ("one", "pass"),
        ("two", "block"),
        ("three", "block"),
    ]
    finding = said["samples"][1]["findings"][0]
    assert (finding["rule"], finding["kind"], finding["path"]) == ("identifier", "task_id", "$.note.text")
    assert (finding["start"], finding["end"]) == (4, 20)
    assert said["samples"][2]["findings"][0]["kind"] == "answer_num"
    assert said["counts"] == {"pass": 1, "review": 0, "block": 2}
    assert said["confidentiality"] == "none"
    assert "7731" not in json.dumps(said)


def test_clean_samples_exit_with_zero(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("leakage", "check", samples(tmp_path, {"id": "one", "text": "quiet"}), "--index", str(index)) == 0
    assert "confidentiality: none" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["no samples", "empty", "no index", "no key", "no heldout"])
def test_wrong_use_is_one_line_and_exit_code_two(
    what: str, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = samples(tmp_path, {"id": "one", "text": "quiet"})
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    calls = {
        "no samples": ("check", "none.jsonl", "--index", str(index)),
        "empty": ("check", str(empty), "--index", str(index), "--json"),
        "no index": ("check", good, "--index", str(tmp_path / "none.idx")),
        "no key": ("check", good, "--index", str(index)),
        "no heldout": ("index", "none.json", "-o", str(index)),
    }
    if what == "no key":
        index.with_name("quarry.idx.key").unlink()
    capsys.readouterr()
    assert run("leakage", *calls[what]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("bat: ")
    assert "; " in err
