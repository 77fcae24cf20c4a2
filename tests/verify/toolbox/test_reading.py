"""Schema, inputs, staleness, order, and the words of a text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from bat_core.model.evidence import Evidence
from bat_core.model.receipt import Receipt
from bat_core.model.task import Task
from bat_core.verify.toolbox.claims import claims_all, claims_item
from bat_core.verify.toolbox.inputs import changed, differing, inside
from bat_core.verify.toolbox.ledger import Event, events_of, first, in_order, last, nothing_between, writers
from bat_core.verify.toolbox.stale import before_run, fresh, outdated
from bat_core.verify.toolbox.strict import read_as, read_json, read_rows, repeated
from bat_core.verify.toolbox.words import echo_share, empty_of, hides, informative, visible, without_echo


class Row(BaseModel):
    case: str
    score: float
    tags: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "missing"),
        (b'{"case": "a", "case": "b", "score": 1}', "not strict JSON: a key stands twice"),
        (b'{"case": "a", "score": NaN}', "not strict JSON: NaN is no number"),
        (b'{"case": "a", "score": 1e999}', "not strict JSON: a number is too large"),
        (b'{"case": "a", "score": "0.5"}', "score: "),
        (b"\xff\xfe", "not strict JSON: "),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "too deep"),
        (b"[" * 100_000, "too deep"),
        (b"[" + b"1," * 600_000 + b"1]", "larger than 1048576 bytes"),
    ],
)
def test_odd_json_is_refused_with_a_reason(data: bytes | None, reason: str) -> None:
    found = read_as(data, Row)
    assert found.value is None and found.reason.startswith(reason)


def test_good_json_becomes_a_value() -> None:
    assert read_as(b'{"case": "a", "score": 1, "tags": ["x"]}', Row).value == Row(case="a", score=1.0, tags=("x",))


@given(st.binary(max_size=64))
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    value, reason = read_json(data)
    assert bool(reason) or json.loads(data) == value
    rows, why = read_rows(data, ("a", "b"))
    assert bool(why) or all(len(row) == 2 for row in rows)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2,3\n", "odd row"),
        ("a,b\n=cmd(),2\n", "odd row"),
        ("b,a\n1,2\n", "the first line is not a,b"),
        ("", "the first line is not a,b"),
        ("a,b\n" + "1,2\n" * 11, "more than 10 rows"),
    ],
)
def test_odd_rows_are_refused(text: str, reason: str) -> None:
    assert read_rows(text.encode(), ("a", "b"), most=10)[1].startswith(reason)
    assert read_rows(b"a,b\n 1 , 2 \n\n", ("a", "b")) == ([("1", "2")], "")
    assert repeated(["x", "y", "x"]) == ["x"]


def test_every_change_of_an_input_is_named() -> None:
    before = {"in/a": b"1", "in/b": b"2", "out/c": b"3"}
    after = {"in/a": b"1", "in/b": b"0", "in/new": b"", "out/c": b"4"}
    assert changed(before, after, ["in/"]) == ["protected path in/b was changed", "protected path in/new was changed"]
    assert changed(before, {"in/a": b"1"}, ["in/"], ["in/b"])[-1].endswith("is not a file")
    assert changed(before, dict(before), ["in/"]) == []
    noted = {"in/a": "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"}
    assert differing(before, noted) == [] and differing({"in/a": b"x"}, noted) == ["in/a"] == differing({}, noted)


@pytest.mark.parametrize("path", ["in/x", "./in/x", "out/../in/x", "in", "/in//x", "in\\x"])
def test_a_path_is_inside_however_it_is_spelt(path: str) -> None:
    assert inside(path, ["in/"])
    assert not inside("inner/x", ["in/"]) and not inside("in/../out", ["in/"])


EVENTS = (
    Event(0, "look", wrote=frozenset()),
    Event(1, "make", wrote=frozenset({"a"}), changed=True),
    Event(2, "make", wrote=frozenset({"b"}), changed=True),
)


def test_order_writers_and_age_follow_the_ledger() -> None:
    assert in_order(EVENTS, lambda e: e.code == "look", lambda e: e.code == "make")
    assert not in_order(EVENTS, lambda e: e.code == "make", lambda e: e.code == "look")
    assert not in_order(EVENTS, lambda e: e.code == "nothing")
    assert [e.seq for e in writers(EVENTS, "a")] == [1]
    assert outdated(EVENTS, "a", ["b"]) == "b was written after a" and outdated(EVENTS, "b", ["a"]) == ""
    made = last(EVENTS, lambda e: e.code == "make")
    assert made is EVENTS[2] and nothing_between(EVENTS, EVENTS[1], "a") and not nothing_between(EVENTS, EVENTS[1], "b")
    unknown = (*EVENTS, Event(3, "x", wrote=None, changed=True))
    assert not nothing_between(unknown, EVENTS[1], "a") and first(EVENTS, lambda e: False) is None


def test_receipts_become_events_history_first() -> None:
    def receipt(seq: int, after: str, rc: int = 0) -> Receipt:
        return Receipt(
            seq=seq, provider="p", language="bash", code=f"c{seq}", status="exited", rc=rc, stdout="o", stderr="",
            out_sha="", err_sha="", ws_before="x", ws_after=after,
        )  # fmt: skip

    task = Task(id="t", domain="d", track="t", seed=0)
    sealed = Evidence(
        task=task, focus="A", start={}, files={}, history=(receipt(0, "x"),), receipts=(receipt(1, "y", 1),)
    )
    old, new = events_of(sealed)
    assert (old.own, old.changed, old.wrote, old.ok) == (False, False, frozenset(), True)
    assert (new.own, new.changed, new.wrote, new.ok) == (True, True, None, False)


def test_an_artifact_that_was_there_is_not_fresh() -> None:
    assert fresh({"a": b"1"}, {"a": b"2"}, "a") and fresh({}, {"a": b"1"}, "a")
    assert not fresh({"a": b"1"}, {"a": b"1"}, "a") and not fresh({"a": b"1"}, {}, "a")
    assert before_run("2031-01-01T00:00:00Z", "2031-01-01T00:00:01Z")
    assert not before_run("2031-01-01T00:00:02Z", "2031-01-01T00:00:01Z") and not before_run("soon", "now")


CRITERIA = ["The plan names at least one concrete risk and a fallback.", "The data were inspected before the plan."]


@pytest.mark.parametrize(
    "key", ["", "   ", ":", ".", ",", "Thought process:", "Let's solve this step by step.", "Solution"]
)
def test_master_keys_say_nothing(key: str) -> None:
    assert empty_of(key, CRITERIA)


def test_the_rubric_said_again_says_nothing() -> None:
    text = " ".join(CRITERIA)
    assert echo_share(text, CRITERIA) > 0.6 and empty_of(text, CRITERIA) == "the text repeats the rubric"
    own = "Dim grids fall under the threshold; then the eightieth percentile of that grid serves as a new bright limit."
    assert empty_of(own, CRITERIA) == "" and own in without_echo(f"{own}\n{text}", CRITERIA)
    assert CRITERIA[0] not in without_echo(f"{own}\n{text}", CRITERIA)


def test_filler_and_repetition_do_not_inform() -> None:
    assert empty_of("good good good " * 40, CRITERIA).startswith("the text has 1 informative words")
    assert informative("The grid, the GRID and all of it: 7") == ["grid", "7"]


def test_hidden_characters_are_not_seen() -> None:
    assert visible("a\u200bb \u202essap\u202c c\U000e0041") == "ab   c" and hides("x\u2060") and not hides("x\ty\n")


def test_words_claim_only_what_they_claim() -> None:
    assert claims_all("All checks passed, nothing is missing.") and claims_all("| all | \u2705 |")
    assert not claims_all("I could not complete this stage; several checks failed.")
    assert not claims_all("Setup done; see the receipt.") and not claims_all("Smoke test failed, all else passed.")
    assert claims_item("U3 is right.", "U3") and not claims_item("U3 failed.", "U3") and not claims_item("U31", "U3")
    assert claims_item("The smoke test passed.", "S3", ("smoke",))
