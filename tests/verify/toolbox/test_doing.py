"""Commands that count, facts read back, degenerate and swapped outputs, findings."""

from __future__ import annotations

import asyncio

import pytest

from bat_core.model.evidence import Evidence
from bat_core.model.rubric import RubricItem
from bat_core.model.task import Task
from bat_core.verify.toolbox.command import Allowed, counts, options_of, plain, tampered, truncated
from bat_core.verify.toolbox.degenerate import alike_share, copied, flat, identical, memorised
from bat_core.verify.toolbox.facts import calls_of
from bat_core.verify.toolbox.finding import Finding, FunctionVerifier, claim
from bat_core.verify.toolbox.ledger import Event
from bat_core.verify.toolbox.readback import read_back
from bat_core.verify.toolbox.swapped import Swap, swapped

TOOL = Allowed(("python", "score.py"), {"--pred": ("val",), "--quiet": (), "--case": ("k*",)})


@pytest.mark.parametrize(
    "code",
    [
        "python score.py",
        "python3 score.py --pred val",
        "python ./score.py --pred=val/ --quiet",
        "python score.py --case k1",
    ],
)
def test_plain_calls_of_an_allowed_program_count(code: str) -> None:
    assert counts(Event(0, code), TOOL) is not None


@pytest.mark.parametrize(
    "code",
    [
        "python score.py || true", "python score.py 2>/dev/null", "python score.py | tee log", "SKIP=1 python score.py",
        "python score.py; exit 0", "python score.py &", "# python score.py", "echo python score.py",
        "python score.py\n:",
        "python score.py --pred inputs", "python score.py --pred val --pred val", "python score.py --oracle",
        "python -c 'print(1)' score.py", "python -i score.py", "$(echo python) score.py", "python other/score.py",
        "bash -c 'python score.py'", "python score.py --case k/../../x", "python score.py --pred",
        "env python score.py",
        "cat <<'E'\npython score.py\nE", "python score.py 'unclosed", "", "true && python score.py",
    ],
)  # fmt: skip
def test_anything_else_does_not(code: str) -> None:
    assert counts(Event(0, code), TOOL) is None


def test_a_call_that_failed_does_not_count() -> None:
    assert counts(Event(0, "python score.py", ok=False), TOOL) is None
    assert counts(Event(0, "python score.py", stderr="Traceback (most recent call last):\n KeyError"), TOOL) is None
    least = Allowed(("python", "score.py"), {"--case": ("k*",)}, least=("--case",))
    assert options_of("python score.py", least) is None and options_of("python score.py --case k1", least)
    assert plain("run 'a | b'") == ["run", "a | b"] and truncated(Event(0, "x", stdout="[output truncated]"))


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("cat > score.py", "score.py"), ("x", "sitecustomize.py"), ("x", "numpy/__init__.py"), ("x", "numpy.py"),
        ("x", "lib/evil.pth"), ("alias python=true", ""), ("export PATH=.:/bin", ""), ("python() { :; }", ""),
        ("PYTHONPATH=. true", ""), ("x", "lib/native.so"),
    ],
)  # fmt: skip
def test_a_tool_is_worthless_after_tampering(code: str, path: str) -> None:
    events = (Event(0, code, wrote=frozenset({path} if path else ())), Event(1, "python score.py"))
    assert tampered(events, events[1], ["score.py"], ["numpy"])


def test_own_files_and_later_changes_do_not_spoil_a_tool() -> None:
    late = (Event(0, "x", wrote=frozenset({"notes.md", "helper.py"})), Event(1, "python score.py"),
            Event(2, "cat > score.py", wrote=frozenset({"score.py"})))  # fmt: skip
    assert tampered(late, late[1], ["score.py"], ["numpy"]) == ""


def test_a_look_shows_facts_that_the_code_does_not_hold() -> None:
    look, fake = (
        Event(0, "show('m')", stdout="1231 62 0.05 LPS"),
        Event(0, "print('1231 62 0.05')", stdout="1231 62 0.05"),
    )
    facts = [1231, 62, "LPS"]
    assert read_back(calls_of([look]), facts, 3).passed
    made_up = read_back(calls_of([fake]), facts, 2)
    assert not made_up.passed and made_up.claimed and made_up.eta == 0
    assert not read_back(calls_of([look]), [], 0).passed and not read_back(calls_of([]), facts, 1).passed


def test_degenerate_outputs_are_named() -> None:
    assert flat("0000") and flat("") and not flat("0100")
    assert identical({"a": 1, "b": 1, "c": 2}) == [("a", "b")]
    assert identical({"a": 1, "b": 1}, {"a": b"x", "b": b"x"}) == [] and identical({"a": 1, "b": 1}, {"a": 1, "b": 2})
    assert copied({"o": b"1 2\n"}, {"in": b"1  2"}) == [("o", "in")] and copied({"o": b" "}, {"in": b""}) == []
    assert alike_share("0110", "0111") == 0.75 and alike_share("", "") == 0 and alike_share("0", "00") == 0
    assert memorised([True, True], [False, True]) and not memorised([True, False], [True, False])
    assert not memorised([], [False]) and not memorised([False], [False])


def test_right_outputs_under_wrong_names_are_found() -> None:
    wanted = {"a": 1, "b": 2, "c": 2}
    same = int.__eq__
    assert swapped({"a": 2, "b": 1, "c": 2}, wanted, same) == [Swap("a", "b"), Swap("b", "a")]
    assert swapped({"a": 9}, wanted, same) == [] and swapped(wanted, wanted, same) == []


def test_a_finding_takes_its_evidence_apart() -> None:
    item = RubricItem(id="A.a", criterion="?", verifier="check:x")
    found = Finding(True).lowered("log", 0.5, "truncated").lowered("file", 1.0, "there")
    verdict = found.verdict(item)
    assert verdict.evidence == 0.5 and verdict.claimed and [slot.trust for slot in verdict.slots] == [0.5, 1.0]
    assert claim(False, "wrong").eta == 0 and claim(False, "wrong", claimed=False).eta == 1
    assert Finding(None).verdict(item).reason == "could not be found out"


def test_a_function_is_a_verifier_plain_or_async() -> None:
    item = RubricItem(id="A.a", criterion="?", verifier="check:x")
    sealed = Evidence(task=Task(id="t", domain="d", track="t", seed=0), focus="A", start={}, files={"a": b"1"})

    async def later(count: int) -> Finding:
        return Finding(count == 1)

    for check in (later, lambda count: Finding(count == 1)):
        assert asyncio.run(FunctionVerifier(check, lambda one: len(one.files)).verify(item, sealed)).passed is True
