from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import LeakageError
from bat_core.leakage.overrides import Override, admitted, read_overrides
from bat_core.model.leakage import Checked, LeakageFinding

DIGEST = "sha256:" + "0" * 64
GOOD = {"sample": DIGEST, "reason": "a licence notice that both sides quote", "by": "owner"}


def test_a_decision_is_read_and_told(tmp_path: Path) -> None:
    path = tmp_path / "overrides.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n")
    assert str(read_overrides(path)[DIGEST]) == "sha256:000000000000 by owner: a licence notice that both sides quote"


@pytest.mark.parametrize(
    "change", [{"reason": ""}, {"reason": "ok"}, {"by": " "}, {"sample": "sha256:12"}, {"more": 1}, {"by": None}]
)
def test_a_decision_without_a_reason_is_an_error(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "overrides.jsonl"
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(LeakageError, match=r"overrides.jsonl:1 .*; "):
        read_overrides(path)


def test_findings_can_be_overridden_and_failures_cannot() -> None:
    override = Override.model_validate(GOOD)
    found = LeakageFinding(rule="text", kind="report", reason="a copy")
    failed = LeakageFinding(rule="odd", reason="rule odd failed: RuntimeError")
    assert admitted(Checked(id="a", verdict="pass"), None)
    assert not admitted(Checked(id="a", verdict="block", findings=(found,)), None)
    assert admitted(Checked(id="a", verdict="block", findings=(found,)), override)
    assert not admitted(Checked(id="a", verdict="block", findings=(found, failed)), override)
