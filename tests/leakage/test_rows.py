"""What stands in a line of a file: each gets a verdict or the file one error, never a pass for want of reading."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bat_core.errors import LeakageError
from bat_core.leakage import rows
from bat_core.leakage.panel import Panel
from bat_core.leakage.rows import Line, check_lines, chunks
from bat_core.model.leakage import Checked


def checked(panel: Panel, data: bytes, tmp_path: Path) -> list[Checked]:
    path = tmp_path / "samples.jsonl"
    path.write_bytes(data)
    return [one for chunk in chunks(path) for one in check_lines(panel, chunk)]


GOOD = b'{"id": "good", "text": "the quay was quiet"}\n'
BAD = {
    "bad UTF-8": b'{"id": "a", "text": "\xff\xfe"}\n',
    "5,000 levels": b'{"id": "a", "text": ' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    "100,000 levels": b'{"id": "a", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "a key twice": b'{"id": "a", "text": "QRX-7731-OBOE-58", "text": "quiet"}\n',
    "a key twice, deep": b'{"id": "a", "x": [{"y": "QRX-7731-OBOE-58", "y": 1}]}\n',
    "no JSON": b"QRX-7731-OBOE-58\n",
    "half": b'{"id": "a", "text": "QRX\n',
    "a list": b"[1, 2]\n",
    "a number": b"17\n",
    "NUL": b"\x00\n",
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_is_blocked_and_named_and_the_rest_goes_on(what: str, panel: Panel, tmp_path: Path) -> None:
    first, bad, last = checked(panel, GOOD + BAD[what] + GOOD, tmp_path)
    assert first.verdict == last.verdict == "pass"
    assert (bad.verdict, bad.id) == ("block", "line 2")
    assert "line 2" in bad.findings[0].reason
    assert "7731" not in bad.model_dump_json()


@pytest.mark.parametrize("data", [b"", b"\n\n  \n"])
def test_an_empty_file_is_an_error(data: bytes, panel: Panel, tmp_path: Path) -> None:
    with pytest.raises(LeakageError, match="holds no samples"):
        checked(panel, data, tmp_path)


def test_a_line_of_fifty_megabytes_is_blocked_and_not_held_in_memory(panel: Panel, tmp_path: Path) -> None:
    huge = b'{"id": "huge", "text": "' + b"x" * 50_000_000 + b'"}\n'
    first, second, third = checked(panel, GOOD + huge + GOOD, tmp_path)
    assert [first.verdict, second.verdict, third.verdict] == ["pass", "block", "pass"]
    assert "longer than" in second.findings[0].reason


def test_a_line_within_the_limit_but_over_that_of_a_sample_is_blocked(panel: Panel, tmp_path: Path) -> None:
    (only,) = checked(panel, b'{"id": "big", "text": "' + b"x " * 8_100_000 + b'"}\n', tmp_path)
    assert (only.verdict, only.id) == ("block", "big")


def test_ids_may_be_numbers_or_missing_and_a_mark_at_the_start_does_no_harm(panel: Panel, tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"id": 7, "text": "quiet"}\r\n\n{"text": "QRX-7731-OBOE-58"}'
    assert [(one.id, one.verdict) for one in checked(panel, data, tmp_path)] == [("7", "pass"), ("line 3", "block")]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=80) | st.sampled_from([*BAD.values(), GOOD]), max_size=4))
def test_any_bytes_get_verdicts(data: list[bytes]) -> None:
    from bat_core.leakage.rules.identifier import IdentifierRule
    from bat_core.model.leakage import HeldoutItem

    item = HeldoutItem(item_id="a", task="t", kind="identifier", text="QRX-7731-OBOE-58")
    lines = [Line(number, one) for number, one in enumerate(data, 1)]
    answers = check_lines(Panel([IdentifierRule()], [item]), lines)
    assert len(answers) == len(lines)
    for line, answer in zip(data, answers, strict=True):
        if answer.verdict == "pass":
            assert isinstance(json.loads(line), dict)


def test_a_chunk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK", 1000)
    path = tmp_path / "many.jsonl"
    path.write_bytes(GOOD * 500)
    sizes = [sum(len(line.data or b"") for line in chunk) for chunk in chunks(path)]
    assert sum(sizes) == 500 * len(GOOD)
    assert max(sizes) < 1000 + len(GOOD)
