"""The evaluator process in earnest: what comes out, and what can't be smuggled."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from bat_core.errors import EvaluatorError
from bat_core.evaluate.client import EvaluatorProcess
from bat_core.evaluate.declared import undeclared
from bat_core.evaluate.server import heldout_items
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.training import PolicyRef

MINE = PolicyRef(path="somewhere", digest="sha256:" + "1" * 64)
THEIRS = PolicyRef(path="elsewhere", digest="sha256:" + "2" * 64)


def evaluate(domain: str, folder: Path, how: str, seen: list[tuple[object, object]] | None = None) -> Diagnosis:
    heard = [] if seen is None else seen
    with EvaluatorProcess(domain, "heldout", {"how": how}, folder / "evaluator") as process:
        return process.evaluate(MINE, THEIRS, lambda done, total: heard.append((done, total)))


@pytest.mark.parametrize("how", ["good", "extra"])
def test_a_diagnosis_comes_back_and_nothing_else(walled: str, tmp_path: Path, how: str) -> None:
    seen: list[tuple[object, object]] = []
    found = evaluate(walled, tmp_path, how, seen)
    assert "SECRET" not in found.model_dump_json() + repr(vars(found))
    assert (found.policy, found.against, found.overall) == (MINE.digest, THEIRS.digest, 0.5)
    assert found.failures == {"A": 1, "late": 2}
    assert seen == [(1, 2)]
    folder = tmp_path / "evaluator"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "SECRET TEXT on stdout" in (folder / "heldout.log").read_text()


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("die", "died or sent garbage"),
        ("raise", "died or sent garbage"),
        ("error", "failed with BatError"),
        ("class", "failed with an error"),
        ("progress", "sent progress that is not two counts"),
        ("stage", "sent a Diagnosis with names that its domain does not declare"),
        ("policy", "sent the Diagnosis of other policies"),
        ("text", "sent something that is not a Diagnosis"),
        ("nan", "sent something that is not a Diagnosis"),
        ("huge", "died or sent garbage"),
        ("frame", "died or sent garbage"),
    ],
)
def test_nothing_can_be_smuggled(walled: str, tmp_path: Path, how: str, what: str) -> None:
    seen: list[tuple[object, object]] = []
    with pytest.raises(EvaluatorError) as caught:
        evaluate(walled, tmp_path, how, seen)
    log = tmp_path / "evaluator" / "heldout.log"
    assert str(caught.value) == f"the heldout evaluator process {what}; see {log}, then run again"
    assert "SECRET" not in repr(seen) + str(caught.value)


@pytest.mark.parametrize("field", ["stages", "stage_gains", "tracks", "track_gains", "gains", "failures"])
def test_only_declared_names_may_be_keys(walled: str, field: str) -> None:
    gain = {"mean": 0, "low": 0, "high": 0, "n": 1}
    value = gain if "gains" in field else 1
    fine: dict[str, object] = {"policy": MINE.digest, "suite": MINE.digest, "overall": 1, "agentic": 1, "n": 1}
    fine |= {"stages": {"A": 1}, "tracks": {"t": 1}, "gains": {"overall": gain, "task": gain}, "failures": {"late": 1}}
    assert undeclared(Diagnosis.model_validate(fine), walled) == set()
    assert undeclared(Diagnosis.model_validate(fine | {field: {"kestrel_418": value}}), walled) == {"kestrel_418"}


def test_the_evaluator_gets_no_secrets_of_the_loop(
    walled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "x")
    assert evaluate(walled, tmp_path, "environment").n == 0


def test_a_process_is_kept_between_evaluations_and_started_again_after_a_failure(walled: str, tmp_path: Path) -> None:
    with EvaluatorProcess(walled, "blind", {"how": ""}, tmp_path / "evaluator") as process:
        process.evaluate(MINE, None, lambda done, total: None)
        first = process._process
        process.evaluate(MINE, THEIRS, lambda done, total: None)
        assert process._process is first and first is not None
        first.kill()
        with pytest.raises(EvaluatorError, match="died"):
            process.evaluate(MINE, None, lambda done, total: None)
        assert process.evaluate(MINE, None, lambda done, total: None).n == 4
    process.close()


def test_a_domain_that_is_not_there_says_so_in_the_log(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="the heldout evaluator process failed with PluginError; see"):
        evaluate("nowhere", tmp_path, "")
    assert "no plugin named 'nowhere' of kind domains" in (tmp_path / "evaluator" / "heldout.log").read_text()


def test_the_checker_gets_the_items_of_both_suites(walled: str) -> None:
    items = heldout_items(walled, {"heldout": {"how": ""}, "blind": {"how": ""}})
    assert [item.text for item in items] == ["SECRET TEXT"] * 2
