from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.model.message import ToolCall
from bat_core.model.sandbox import ExecResult
from bat_core.rollout.tool_loop import EXECUTE_CODE, ToolLoop, cut


@given(st.text(max_size=300), st.integers(1, 200))
def test_an_observation_never_exceeds_its_limit_and_says_how_much_is_missing(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
        return
    if limit < 40:
        return
    head, _, rest = shown.partition("\n[")
    count, _, tail = rest.partition(" characters cut]\n")
    if count.isdigit() and "\n[" not in text:
        assert text.startswith(head) and text.endswith(tail)
        assert len(head) + int(count) + len(tail) == len(text)
        assert 0 <= len(head) - len(tail) <= 1


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (ExecResult(status="exited", rc=0, stdout=b"\n3\n\n", stderr=b""), "3"),
        (ExecResult(status="exited", rc=0, stdout=b"", stderr=b""), ""),
        (ExecResult(status="exited", rc=1, stdout=b"a\n", stderr=b"oops\n"), "a\noops\n[exit 1]"),
        (ExecResult(status="exited", rc=2, stdout=b"", stderr=b""), "[exit 2]"),
        (ExecResult(status="timeout", rc=None, stdout=b"so far", stderr=b""), "so far\n[timeout]"),
        (ExecResult(status="oom", rc=None, stdout=b"", stderr=b""), "[oom]"),
        (ExecResult(status="killed", rc=None, stdout=b"\xff", stderr=b""), "\ufffd\n[killed]"),
    ],
)
def test_an_observation_says_what_was_printed_and_how_it_ended(result: ExecResult, shown: str) -> None:
    assert ToolLoop().observation(result) == shown


def test_the_limit_of_the_observation_holds() -> None:
    long = ExecResult(status="exited", rc=1, stdout=b"x" * 10_000, stderr=b"the end\n")
    shown = ToolLoop(160).observation(long)
    assert len(shown) <= 160 and shown.endswith("the end\n[exit 1]") and "characters cut" in shown


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(name="rm", arguments={}),
        ToolCall(name="execute_code", arguments={}),
        ToolCall(name="execute_code", arguments={"language": "perl", "code": "x"}),
        ToolCall(name="execute_code", arguments={"language": "python", "code": 3}),
        ToolCall(name="execute_code", arguments={"language": ["python"], "code": "x"}),
    ],
)
def test_a_call_that_is_not_well_formed_is_answered_and_not_executed(call: ToolCall) -> None:
    sandbox: Any = None  # any use of it would raise
    assert str(asyncio.run(ToolLoop().call(sandbox, call, 1.0))).startswith("error: ")


def test_the_tool_is_shown_as_a_json_schema() -> None:
    assert ToolLoop().tools() == (EXECUTE_CODE,)
    assert EXECUTE_CODE.parameters["required"] == ["language", "code"]
