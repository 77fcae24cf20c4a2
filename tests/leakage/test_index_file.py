from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import LeakageError
from bat_core.leakage.building import build_index
from bat_core.leakage.heldout_file import read_heldout
from bat_core.leakage.index_file import read_index
from bat_core.leakage.keys import VARIABLE, key_file, key_of
from bat_core.leakage.panel import Panel
from bat_core.model.leakage import HeldoutItem


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def heldout_json(heldout: dict[str, HeldoutItem], tmp_path: Path) -> Path:
    rows = [item.model_dump(exclude={"label"}) for item in heldout.values()]
    rows += [{"item_id": "pin", "task": "t9", "kind": "task_id", "text": "ZQV-0412"}]
    path = tmp_path / "heldout.json"
    path.write_text(json.dumps({"benchmark": "quarry", "items": rows}))
    return path


@pytest.fixture
def built(heldout_json: Path, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "quarry.idx"
    return path, build_index(heldout_json, None, path)


def test_cover_and_refusals_are_told(built: tuple[Path, dict[str, Any]]) -> None:
    _, said = built
    assert said["covered"] == {
        "answer": 2, "fact": 0, "identifier": 4, "path": 1, "secret": 1, "text": 1, "trace": 1,
    }  # fmt: skip
    refused = {row["item_id"]: row["reason"] for row in said["refused"]}
    assert set(refused) == {"weak-id", "weak-answer", "weak-path", "weak-text", "pin"}
    assert "too generic" in refused["weak-id"]


def test_the_file_answers_as_the_panel_does(
    built: tuple[Path, dict[str, Any]], heldout: dict[str, HeldoutItem], panel: Panel
) -> None:
    path, said = built
    restored, about = read_index(path, key_of(path))
    assert restored.index == said["index"] == about["index"]
    samples = [(item.item_id, f"see {item.text} there") for item in heldout.values()]
    samples += [("clean", "the survey of the eastern shore went on"), ("half", heldout["t1-text"].text[:90])]
    ours, theirs = panel.check_all(samples), restored.check_all(samples)
    assert [(one.id, one.verdict) for one in ours] == [(one.id, one.verdict) for one in theirs]
    assert {f.kind for one in theirs for f in one.findings} <= {
        "identifier",
        "path",
        "text",
        "answer",
        "trace",
        "secret",
    }


def test_the_file_holds_no_text_no_half_and_no_word(
    built: tuple[Path, dict[str, Any]], heldout: dict[str, HeldoutItem]
) -> None:
    data = built[0].read_bytes()
    low = data.lower()
    for item in heldout.values():
        text = item.text.encode()
        assert text not in data
        for half in (text[: len(text) // 2], text[len(text) // 2 :]):
            assert len(half) < 4 or half not in data
        for word in re.findall(r"\w{6,}", item.text):
            assert word.lower().encode() not in low


def test_even_opened_with_the_key_it_holds_no_text(
    built: tuple[Path, dict[str, Any]], heldout: dict[str, HeldoutItem]
) -> None:
    panel, about = read_index(built[0], key_of(built[0]))
    data = b"".join(array.tobytes() for array in panel.dump().values()) + json.dumps(about).encode()
    for item in heldout.values():
        for word in re.findall(r"\w{6,}", item.text):
            if word.lower() not in ("answer", "identifier", "secret", "report", "trace"):
                assert word.encode() not in data


def test_without_the_key_a_four_digit_identifier_stays_unknown(heldout_json: Path, tmp_path: Path) -> None:
    """Whoever has the file only can't tell the index of one number from that of another: not even its length says."""
    sizes = set()
    for number in ("0412", "7731", "9999"):
        rows = [{"item_id": "a", "task": "t", "kind": "task_id", "text": f"ZQVX-KOB-{number}"}]
        source = tmp_path / f"{number}.json"
        source.write_text(json.dumps(rows))
        path = tmp_path / f"{number}.idx"
        build_index(source, None, path)
        sizes.add(path.stat().st_size)
        for guess in (b"0412", b"7731", b"9999"):
            assert guess not in path.read_bytes()
        with pytest.raises(LeakageError, match="key"):
            read_index(path, b"\0" * 32)
    assert len(sizes) == 1
    again = tmp_path / "again.idx"
    build_index(tmp_path / "0412.json", None, again)
    assert again.read_bytes()[24:] != (tmp_path / "0412.idx").read_bytes()[24:]


def test_the_key_lies_beside_it_for_its_owner_only(built: tuple[Path, dict[str, Any]]) -> None:
    path, said = built
    assert said["key"] == str(key_file(path))
    assert stat.S_IMODE(key_file(path).stat().st_mode) == 0o600


def test_a_key_from_the_environment_is_written_nowhere(
    heldout_json: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "ab" * 32)
    path = tmp_path / "env.idx"
    assert build_index(heldout_json, None, path)["key"] == VARIABLE
    assert not key_file(path).exists()
    assert read_index(path, key_of(path))[0].covered["identifier"] == 4
    monkeypatch.setenv(VARIABLE, "short")
    with pytest.raises(LeakageError, match="too weak"):
        key_of(path)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(LeakageError, match="no key"):
        key_of(path)


@pytest.mark.parametrize("spoil", ["flip", "cut", "empty", "other"])
def test_a_spoiled_index_is_one_error(spoil: str, built: tuple[Path, dict[str, Any]]) -> None:
    path, _ = built
    data = path.read_bytes()
    key = key_of(path)
    spoiled = {"flip": data[:500] + bytes([data[500] ^ 1]) + data[501:], "cut": data[:-9], "empty": b"", "other": b"{}"}
    path.write_bytes(spoiled[spoil])
    with pytest.raises(LeakageError, match="; "):
        read_index(path, key)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no items"),
        ("[]", "no items"),
        ('{"items": 7}', "no list"),
        ('[{"item_id": "a", "kind": "text", "text": ""}]', "item 1 has no text"),
        ('[{"item_id": "a", "kind": "text"}]', "item 1 has no text"),
        ('[{"item_id": "a", "kind": "text", "text": "x", "task": 3}]', "task"),
        ('[["a"]]', "not an object"),
        ('{"items": [{"item_id": "a", "kind": "id", "text": "x", "text": "y"}]}', "not JSON"),
        ("[" * 5000 + "]" * 5000, "not JSON"),
    ],
)
def test_a_bad_file_of_items_is_one_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(LeakageError, match=message):
        read_heldout(path)


def test_kinds_of_the_owner_are_kept_and_unknown_ones_are_taken_by_shape(tmp_path: Path) -> None:
    rows = [
        {"item_id": "a", "task": "t", "kind": "answer_num", "text": "0.8731", "topic": "copper basin rim"},
        {"item_id": "b", "task": None, "kind": "oddity", "text": "/srv/vault/kestrel_418.nii"},
        {"item_id": "c", "task": "t", "kind": "mask_sha256", "text": "9b1e4c7a" * 8},
    ]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = read_heldout(path)
    assert [(item.kind, item.label) for item in items] == [
        ("answer", "answer_num"),
        ("path", "oddity"),
        ("identifier", "mask_sha256"),
    ]
    assert items[0].text == "copper basin rim: 0.8731"
    assert items[1].task == "all"


def test_what_clean_samples_hold_is_no_sign_of_a_leak(tmp_path: Path) -> None:
    items = [
        {"item_id": "p1", "task": "a", "kind": "path", "text": "/data/amber_release_2024/x/slate_tile_0092.png"},
        {
            "item_id": "x1",
            "task": "a",
            "kind": "prompt",
            "text": "Mark every stone of the amber lintel above the line.",
        },
    ]
    source, clean = tmp_path / "items.json", tmp_path / "clean.jsonl"
    source.write_text(json.dumps(items))
    usual = "see /data/amber_release_2024 and mark every stone of the amber lintel above it, twice, as ever"
    clean.write_text("".join(json.dumps({"id": n, "text": f"{usual} {n}"}) + "\n" for n in range(30)))
    verdicts = []
    for background in (None, clean):
        path = tmp_path / f"{background is None}.idx"
        build_index(source, background, path)
        verdicts.append(read_index(path, key_of(path))[0].check("s", f"well, {usual}").verdict)
    assert verdicts == ["block", "pass"]
