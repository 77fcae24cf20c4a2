"""The suite evaluator on two real tasks, with a policy that knows nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bat_core.config.schema import Config
from bat_core.errors import CheckpointError, EvaluatorError
from bat_core.evaluate import suite
from bat_core.evaluate.cells import cell
from bat_core.evaluate.declared import undeclared
from bat_core.evaluate.suite import REPAIRS, SuiteEvaluator
from bat_core.hooks.domain import Suite
from bat_core.model.diagnosis import Diagnosis, Paired
from bat_core.model.reward import Reward
from bat_core.model.state import StageState
from bat_core.model.training import PolicyRef
from bat_core.registry import load_domain
from bat_core.rollout.collect import Scored
from bat_core.rollout.lab import LabSpec, close_labs

DOMAIN = load_domain("medimaging")


@pytest.fixture
def settings(tmp_path: Path, small_config: Config) -> Iterator[dict[str, Any]]:
    lab = LabSpec(
        domain="medimaging",
        store=str(tmp_path / "snapshots"),
        provider="bubblewrap",
        key="ef" * 32,
        rollout=small_config.rollout,
    )
    yield {"lab": lab.model_dump(mode="json"), "folder": str(tmp_path / "cells"), "tasks": 2, "resamples": 100}
    close_labs()


def evaluator(settings: dict[str, Any], name: Suite = "heldout") -> SuiteEvaluator:
    made = DOMAIN.evaluator(name, settings)
    assert isinstance(made, SuiteEvaluator)
    return made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, int]]]:
    """Which cells were run, time after time."""
    calls: list[list[tuple[str, int]]] = []
    plain = SuiteEvaluator._collect

    def collect(self: Any, lab: Any, wanted: Sequence[tuple[StageState, int]], progress: Any) -> list[Scored]:
        calls.append([(state.id, repeat) for state, repeat in wanted])
        return plain(self, lab, wanted, progress)

    monkeypatch.setattr(SuiteEvaluator, "_collect", collect)
    return calls


def quiet(done: int, total: int) -> None: ...


def test_a_policy_is_diagnosed_once_and_paired_with_itself(
    settings: dict[str, Any], tiny_base: PolicyRef, asked: list[list[tuple[str, int]]], tmp_path: Path
) -> None:
    bench = evaluator(settings)
    progress: list[tuple[int, int]] = []
    found = bench.evaluate(tiny_base, None, lambda done, total: progress.append((done, total)))
    assert Diagnosis.model_validate_json(found.model_dump_json()) == found
    assert (found.policy, found.against, found.n, found.invalid) == (tiny_base.digest, None, 2, 0)
    assert set(found.stages) == {"S1", "S2", "S3", "S4", "S5"} and set(found.tracks) == set(DOMAIN.contract().tracks())
    assert found.gains == found.stage_gains == found.track_gains == {}
    assert found.overall == 0.0 and sum(found.failures.values()) == 2 and found.finished == 0.0
    assert progress[-1] == (2, 2) and len(asked) == 1
    assert not undeclared(found, "medimaging")

    paired = bench.evaluate(tiny_base, tiny_base, quiet)
    assert paired.against == tiny_base.digest and len(asked) == 1, "nothing is run again"
    assert paired.gains["overall"] == Paired(mean=0.0, low=0.0, high=0.0, n=2)
    assert set(paired.stage_gains) == set(found.stages)
    assert set(paired.stage_gains.values()) == {Paired(mean=0.0, low=0.0, high=0.0, n=2)}
    assert {gain.n for gain in paired.track_gains.values()} == {1}
    alone: dict[str, Any] = {"against": None, "gains": {}, "stage_gains": {}, "track_gains": {}}
    assert paired.model_copy(update=alone) == found

    assert evaluator(settings).evaluate(tiny_base, tiny_base, quiet) == paired and len(asked) == 1
    ids = [task for task, _ in asked[0]]
    known = [path for path in tmp_path.rglob("*") if path.is_file()]
    (cells,) = [path for path in known if any(i.encode() in path.read_bytes() for i in ids) and path.suffix == ".json"]
    assert cells.parent == tmp_path / "cells" and [row["task_id"] for row in json.loads(cells.read_text())] == ids
    assert not any(i in found.model_dump_json() for i in ids), "no identifier crosses"


def test_what_must_never_be_trained_on_is_what_its_tasks_hold(settings: dict[str, Any]) -> None:
    items = evaluator(settings).heldout()
    assert {item.kind for item in items} == {"identifier", "text", "answer", "secret"}
    assert {item.task for item in items}.isdisjoint({item.task for item in evaluator(settings, "blind").heldout()})


def test_suites_of_other_tasks_are_other_suites(
    settings: dict[str, Any], tiny_base: PolicyRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SuiteEvaluator, "_collect", lambda self, lab, wanted, progress: [NULL for _ in wanted])
    digests = {evaluator(settings, name).evaluate(tiny_base, None, quiet).suite for name in ("heldout", "blind")}
    digests.add(evaluator(settings | {"tasks": 3}).evaluate(tiny_base, None, quiet).suite)
    assert len(digests) == 3
    for other in ({"repeats": 2}, {"temperature": 0.5}):
        evaluator(settings | other).evaluate(tiny_base, None, quiet)
    assert len(list(Path(settings["folder"]).glob("*.json"))) == 5, "scores under other conditions are other scores"


class _Unscored:
    reward = Reward(value=None, reason="the sandbox died")


NULL: Any = _Unscored()


def test_what_could_not_be_judged_is_tried_again_and_then_null(
    settings: dict[str, Any], tiny_base: PolicyRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def collect(self: Any, lab: Any, wanted: Sequence[Any], progress: Any) -> list[Any]:
        tries.append(len(wanted))
        return [NULL for _ in wanted]

    monkeypatch.setattr(SuiteEvaluator, "_collect", collect)
    found = evaluator(settings | {"repeats": 2}).evaluate(tiny_base, None, quiet)
    assert tries == [4] * (1 + REPAIRS)
    assert (found.n, found.invalid, found.overall, found.agentic, found.finished) == (0, 4, None, None, None)
    assert set(found.stages.values()) == set(found.tracks.values()) == {None} and found.failures == {}


def test_only_the_cells_that_failed_are_run_again(
    settings: dict[str, Any], tiny_base: PolicyRef, asked: list[list[tuple[str, int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cell
    seen: list[str] = []

    def unlucky(contract: Any, task_id: str, track: str, repeat: int, reward: Reward) -> Any:
        seen.append(task_id)
        reward = Reward(value=None, reason="bad luck") if len(seen) == 2 else reward
        return plain(contract, task_id, track, repeat, reward)

    monkeypatch.setattr(suite, "cell", unlucky)
    found = evaluator(settings).evaluate(tiny_base, None, quiet)
    assert [len(cells) for cells in asked] == [2, 1] and asked[1] == [asked[0][1]]
    assert (found.n, found.invalid) == (2, 0)


@pytest.mark.parametrize("text", ["[{", "[{}]", '{"a": 1}', "3"])
def test_damaged_cells_are_named_and_never_read_as_scores(
    settings: dict[str, Any], tiny_base: PolicyRef, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(SuiteEvaluator, "_collect", lambda self, lab, wanted, progress: [NULL for _ in wanted])
    evaluator(settings).evaluate(tiny_base, None, quiet)
    (path,) = Path(settings["folder"]).glob("*.json")
    path.write_text(text)
    with pytest.raises(EvaluatorError) as caught:
        evaluator(settings).evaluate(tiny_base, None, quiet)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_policy_that_is_not_what_its_reference_says_is_not_evaluated(
    settings: dict[str, Any], tiny_base: PolicyRef
) -> None:
    other = tiny_base.model_copy(update={"digest": "sha256:" + "1" * 64})
    with pytest.raises(CheckpointError, match="damaged or missing"):
        evaluator(settings).evaluate(other, None, quiet)
