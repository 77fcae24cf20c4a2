from __future__ import annotations

import json

import pytest

from bat_core.cli.doctor import doctor


def report(capsys: pytest.CaptureFixture[str], domain: str) -> tuple[int, dict[str, dict[str, object]]]:
    code = 0
    try:
        doctor(domain=domain, as_json=True)
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    return code, {check["name"]: check for check in json.loads(capsys.readouterr().out)}


def test_the_doctor_runs_a_canary_in_every_sandbox_and_looks_at_the_domain(capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = report(capsys, "medimaging")
    assert checks["bat-core"]["ok"] and checks["disk"]["needed"]
    assert checks["domain medimaging"]["ok"] and "stages S1, S2" in str(checks["domain medimaging"]["detail"])
    assert {"sandbox bubblewrap", "sandbox unsafe-process", "gpu"} <= set(checks)
    assert code == (0 if checks["sandbox bubblewrap"]["ok"] else 1)


def test_a_domain_that_is_missing_is_a_finding_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = report(capsys, "nowhere")
    assert code == 1 and not checks["domain nowhere"]["ok"]
    assert "no plugin named 'nowhere' of kind domains" in str(checks["domain nowhere"]["detail"])
