"""A domain that raises is named, with the method, in one line; a bug of ours is not blamed on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bat_core.cli.main import main

METHODS = {
    "defaults": "Bakery.defaults",
    "contract": "Bakery.contract",
    "stages": "Contract.stages",
    "synthesizer": "Bakery.synthesizer",
    "synthesize": "Synthesizer.synthesize",
    "workspace": "Contract.workspace",
    "expert": "Bakery.expert",
    "act": "Baker.act",
    "rubric": "Contract.rubric",
    "verifiers": "Bakery.verifiers",
    "sandbox": "Bakery.sandbox",
    "task_score": "Contract.task_score",
}


def build(domain: str, run: Path, workers: int, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[object, str]:
    """Build a bank of two tasks in this process; return exit code and errors."""
    words = ["bank", "build", "--domain", domain, "--run", str(run), "bank.tasks=2", f"bank.workers={workers}"]
    code: object = 0
    try:
        main([*more, *words, "sandbox.provider=bubblewrap"])
    except SystemExit as leaving:
        code = leaving.code
    return code, capsys.readouterr().err


@pytest.mark.parametrize("method", METHODS)
def test_a_domain_that_raises_is_named_in_one_line(
    bakery: str, method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIP", method)
    code, said = build(bakery, tmp_path / "run", 0, capsys)
    start = "bat: domains plugin 'bakery' from bat-bakery 0.1.0 (bakery:Bakery) raised RuntimeError in "
    assert code == 2 and said.startswith(f"{start}{METHODS[method]}: the oven is ?[31mcold !!!"), said
    assert said.endswith("; mend it, or ask its authors; --debug shows the traceback\n")
    assert said.count("\n") == 1 and len(said) < 500


@pytest.mark.parametrize("method", ["workspace", "task_score"])
def test_so_is_one_that_raises_in_a_worker_process(
    bakery: str, method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIP", method)
    code, said = build(bakery, tmp_path / "run", 1, capsys)
    assert code == 2 and f"raised RuntimeError in Contract.{method}: the oven" in said and said.count("\n") == 1


def test_a_domain_named_by_its_class_is_named_so(
    bakery: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIP", "expert")
    monkeypatch.setenv("BAT_PLUGINS", "none")
    code, said = build("bakery:Bakery", tmp_path / "run", 0, capsys)
    assert code == 2 and "'bakery:Bakery'" in said and "raised RuntimeError in Bakery.expert: " in said


def test_debug_shows_the_traceback(
    bakery: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIP", "workspace")
    with pytest.raises(RuntimeError, match="the oven is"):
        build(bakery, tmp_path / "run", 0, capsys, "--debug")


def test_what_is_held_out_stays_unsaid(
    bakery: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker knows held-out texts: of an error there only the class may be said."""
    monkeypatch.setattr("bat_core.processes.child.INHERITED", ("PATH", "PYTHONPATH", "TRIP"))
    monkeypatch.setenv("TRIP", "heldout")
    code, said = build(bakery, tmp_path / "run", 0, capsys)
    assert code == 2 and "RuntimeError" in said and "the oven" not in said and said.count("\n") == 1


def test_a_verifier_that_raises_still_judges_nothing(
    bakery: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIP", "verify")
    code, said = build(bakery, tmp_path / "run", 0, capsys)
    assert code == 2 and "no state of 2 tasks was admitted: " in said and "verifier check:loaf raised" in said


def test_a_bug_of_ours_is_not_blamed_on_the_domain(
    bakery: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bat_core.bank.admit._missing", lambda reward: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build(bakery, tmp_path / "run", 0, capsys)
    monkeypatch.undo()


def test_a_domain_that_works_works(bakery: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = build(bakery, tmp_path / "run", 0, capsys)
    assert code == 0 and said.startswith("bank: 4 states and "), said
