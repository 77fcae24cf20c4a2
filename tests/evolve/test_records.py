from __future__ import annotations

import json
import math
from pathlib import Path

from bat_core.config.schema import Config
from bat_core.evolve.journal import Journal
from bat_core.evolve.plan import plan
from bat_core.evolve.records import RoundRecorder, read_rollouts
from bat_core.evolve.settings import evaluator_settings, seed_of
from bat_core.evolve.summary import points, summarize
from bat_core.model.decision import Decision, Signals
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History, RoundRecord
from bat_core.model.mixture import Mixture
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.run import RunInfo
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task

D = "sha256:" + "0" * 64
STATE = StageState(
    id="s",
    task=Task(id="t", domain="d", track="x", seed=0),
    focus="A",
    stratum=Stratum.RECOVERY,
    snapshot=SnapshotRef(root=D),
    messages=(),
    rubrics=(Rubric(stage="A", items=(RubricItem(id="A.a", criterion="?", verifier="check:x"),)),),
)


def diagnosis(overall: float | None, task: float | None = None) -> Diagnosis:
    return Diagnosis(
        policy=D, suite=D, overall=overall, agentic=overall, task=task, stages={"A": overall}, tracks={"x": None}, n=4
    )


def test_a_rounds_rollouts_and_metrics_can_be_read_again(tmp_path: Path) -> None:
    recorder = RoundRecorder()
    rewards = [Reward(value=0.0), Reward(value=None, reason="lost"), Reward(value=0.75, evidence=0.75)]
    for index, reward in enumerate(rewards):
        recorder.rollout(STATE, Rollout(state="s", index=index, end="finished"), reward)
    recorder.metric(1, {"loss": 0.5, "kl": math.nan, "grad": math.inf, "n": 3})
    recorder.write(tmp_path / "01")
    rows = read_rollouts(tmp_path / "01")
    assert [row["reward"] for row in rows] == [0.0, None, 0.75]
    assert {row["stratum"] for row in rows} == {"recovery"}
    assert Reward.model_validate_json(rows[1]["verdicts"]) == rewards[1]
    assert Rollout.model_validate_json(rows[2]["rollout"]).index == 2
    metrics = json.loads((tmp_path / "01" / "metrics.jsonl").read_text())
    assert metrics == {"step": 1, "loss": 0.5, "kl": None, "kl_was": "nan", "grad": None, "grad_was": "inf", "n": 3}


def test_a_round_without_rollouts_has_none(tmp_path: Path) -> None:
    assert read_rollouts(tmp_path) == []
    RoundRecorder().write(tmp_path)
    assert read_rollouts(tmp_path) == []


def test_a_summary_is_computed_from_the_journal_and_null_stays_null(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.once("bank", lambda: {"tasks": 4, "states": 24, "slices": 9, "rejected": 1})
    for number in (1, 2):
        journal.once(f"train:{number}", lambda: {"stats": {"rollouts": 10, "lost": 1}})
    records = tuple(
        RoundRecord(
            round=number,
            mixture=Mixture(round=number, target="A", groups={"target": 4}, mix=(), reason="r"),
            diagnosis=diagnosis(score),
            signals=Signals(finite=True),
            decision=Decision.model_validate(
                {
                    "round": number,
                    "outcome": outcome,
                    "gain": gain,
                    "checks": (),
                    "reason": "r",
                    "stop_reason": "all done",
                }
            ),
        )
        for number, outcome, score, gain in ((1, "promoted", 0.61234, 0.1), (2, "held", None, None))
    )
    history = History(coldstart=diagnosis(0.5), rounds=records)
    info = RunInfo(name="n", directory="d", domain="d", seed=0, config=D)
    summary = summarize(info, journal, history, diagnosis(0.0), diagnosis(0.25, 0.5), ["p"])
    assert summary.heldout["best"]["overall"] == 61.23 and summary.heldout["coldstart"]["overall"] == 50.0
    assert summary.blind["coldstart"]["overall"] == 0.0 and summary.blind["best"]["task"] == 50.0
    assert summary.heldout["best"]["tracks"] == {"x": None}
    rows = [(row["overall"], row["gain"], row["decision"]) for row in summary.rounds]
    assert rows == [(61.23, 10.0, "promoted"), (None, None, "held")]
    assert summary.counts == {"tasks": 4, "states": 24, "slices": 9, "rejected": 1, "rollouts": 20, "lost": 2}
    assert summary.dropped_observers == ("p",) and summary.stop_reason == "all done"
    assert points(None) is None and points(0.0) == 0.0


def test_the_plan_counts_what_a_run_will_do() -> None:
    config = Config.model_validate(
        {"train": {"steps": 3, "groups": 8, "rollouts": 4, "probe": 5}, "loop": {"rounds": 2},
         "evaluate": {"tasks": 10, "blind_tasks": 6, "repeats": 2}}
    )  # fmt: skip
    found = plan(config, stages=5, tracks=2)
    assert found["bank"]["cells"] == 6 * 2 * 3
    assert found["round"] == {"steps": 3, "groups_per_step": {"target": 4, "mix": 2, "e2e": 2}, "rollouts": 3 * 32 + 5}
    assert found["evaluations"] == {"heldout_cells": 20 * 3, "blind_cells": 24}
    assert found["total_rollouts"] == 2 * 101 + 60 + 24


def test_seeds_depend_on_the_run_and_on_what_they_are_for() -> None:
    one, other = Config(seed=1), Config(seed=2)
    seeds = [seed_of(one, "bank"), seed_of(other, "bank"), seed_of(one, "round", 1), seed_of(one, "round", 2)]
    assert len(set(seeds)) == 4 and seeds[0] == seed_of(one, "bank")


def test_the_evaluators_snapshots_lie_in_its_own_folder(tmp_path: Path) -> None:
    from bat_core.evolve.directory import RunDirectory

    with RunDirectory(tmp_path) as run:
        settings = evaluator_settings(Config(), run, "blind")
        assert settings["lab"]["store"].startswith(str(run.evaluator)) and settings["folder"] == str(
            run.evaluator / "blind"
        )
