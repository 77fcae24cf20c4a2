"""A small run directory made by the parts that make real ones: journal, recorder, bank store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bat_core.bank.store import write
from bat_core.bank.tables import Rejection
from bat_core.evolve.directory import write_json
from bat_core.evolve.journal import Journal
from bat_core.evolve.records import RoundRecorder
from bat_core.evolve.summary import summarize
from bat_core.model.decision import Check, Decision, Signals
from bat_core.model.diagnosis import Diagnosis, Paired
from bat_core.model.history import History, RoundRecord
from bat_core.model.message import Message, ToolCall
from bat_core.model.mixture import Mixture
from bat_core.model.reward import Reward, StageScore
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.run import RunInfo
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.model.training import PolicyRef, TrainResult, TrainStats
from bat_core.model.verdict import ItemVerdict

DIGEST = "sha256:" + "a" * 64
HOSTILE = "<script>alert('stolen')</script>"
PHASES = ("bank", "coldstart", "evaluate", "mixture", "train", "candidate", "decision", "blind", "summary")


def state(name: str, focus: str = "S1", stratum: Stratum = Stratum.SUCCESS) -> StageState:
    task = Task(id=f"task-{name}", domain="toy", track="left", seed=1, private={"answer": "needle-in-private"})
    return StageState(
        id=f"task-{name}:{focus}",
        task=task,
        focus=focus,
        stratum=stratum,
        snapshot=SnapshotRef(root="ab" * 32),
        messages=(Message(role="user", content="begin"),),
        rubrics=(
            Rubric(
                stage="S1" if focus == "E2E" else focus,
                items=tuple(
                    RubricItem(id=f"S1.{c}", criterion=f"criterion {c} is met", verifier="check:x") for c in "abc"
                ),
            ),
        ),
    )


def diagnosis(
    overall: float | None, s1: float | None, s2: float | None, gain: float | None = None, invalid: int = 0
) -> Diagnosis:
    pair = {} if gain is None else {"overall": Paired(mean=gain, low=gain - 0.02, high=gain + 0.02, n=12)}
    return Diagnosis(
        policy=DIGEST, suite=DIGEST, overall=overall, agentic=overall, task=None, stages={"S1": s1, "S2": s2},
        tracks={"left": overall}, n=12 - invalid, invalid=invalid, finished=0.75, gains=pair,
    )  # fmt: skip


def scored(
    value: float | None, *, breach: str = "", text: str = "I look first", code: str = "print(1)", lost: str = ""
) -> tuple[Rollout, Reward]:
    call = ToolCall(name="execute_code", arguments={"language": "python", "code": code})
    rollout = Rollout(
        state="unset",
        messages=(
            Message(role="assistant", content=text, tool_calls=(call,)),
            Message(role="tool", content="an observation", name="execute_code"),
            Message(role="assistant", content="stage done"),
        ),
        end="lost" if lost else "finished",
        reason=lost,
        turns=2,
    )
    verdicts = (
        ItemVerdict(item="S1.a", passed=True),
        ItemVerdict(item="S1.b", passed=False, evidence=0.5, claimed=True, reason="the file is missing"),
        ItemVerdict(
            item="S1.c", passed=None if value is None else True, reason="the grader timed out" if value is None else ""
        ),
    )
    stage = StageScore(
        stage="S1",
        score=value,
        evidence=0.75,
        verdicts=verdicts,
        reason="S1.c: the grader timed out" if value is None else "",
    )
    why = breach or ("could not be judged: S1.c: the grader timed out" if value is None else "")
    return rollout, Reward(
        value=value, evidence=0.75, items=3, nulls=int(value is None), stages=(stage,), breach=breach, reason=why
    )


def record_round(folder: Path) -> None:
    recorder = RoundRecorder()
    rows = [
        (state("one"), *scored(0.91, text=HOSTILE)),
        (state("two"), *scored(0.12, code="x" * 9000)),
        (state("three"), *scored(0.0, breach="protected path inputs/card.json was changed")),
        (state("four"), *scored(None)),
        (state("five", "E2E"), *scored(0.44)),
        (state("six"), *scored(0.5)),
    ]
    for one, rollout, reward in rows:
        recorder.rollout(one, rollout.model_copy(update={"state": one.id}), reward)
    recorder.metric(1, {"reward": 0.25, "loss": 0.1})
    recorder.metric(2, {"reward": float("nan"), "loss": 0.1})
    recorder.metric(3, {"reward": 0.35, "loss": 0.1})
    recorder.write(folder)


def build_run(path: Path, last: str = "summary") -> Path:
    """Make a run of two rounds (held, then promoted) that ends after the phase `last` of its second round."""
    done = PHASES[: PHASES.index(last) + 1]
    path.mkdir(parents=True)
    journal = Journal(path / "journal.sqlite")
    journal.set_meta("configuration", "sha256:" + "c0" * 32)
    (path / "config.yaml").write_text("seed: 3  # command line\n")
    states = [state("one"), state("two", "S2", Stratum.RECOVERY), state("five", "E2E")]
    report = write(path / "bank", states, [], [Rejection("sha256:0", "state", "answer", reason="an answer")], 3)
    journal.once("bank", lambda: report.model_dump(mode="json"))
    first = diagnosis(0.411, 0.5, 0.3)
    records: list[RoundRecord] = []
    if "coldstart" in done:
        journal.once("coldstart", lambda: {"base": DIGEST, "result": result().model_dump(mode="json")})
    if "evaluate" in done:
        journal.once("evaluate:coldstart", lambda: first.model_dump(mode="json"))
    if "mixture" in done:
        records.append(write_round(path, journal, 1, diagnosis(None, 0.45, None, invalid=2), "held", PHASES))
        records.append(write_round(path, journal, 2, diagnosis(0.523, 0.61, 0.47, 0.112), "promoted", done))
    if "blind" in done:
        before, after = diagnosis(0.402, 0.4, 0.4), diagnosis(0.507, 0.5, 0.5, 0.105)
        journal.once("blind:coldstart", lambda: before.model_dump(mode="json"))
        journal.once("blind:best", lambda: after.model_dump(mode="json"))
        if "summary" in done:
            info = RunInfo(name=path.name, directory=str(path), domain="toy", seed=3, config="sha256:" + "c0" * 32)
            summary = summarize(
                info, journal, History(coldstart=first, rounds=tuple(records)), before, after, ["acme/watch"]
            )
            write_json(path / "summary.json", summary.model_dump(mode="json"))
    journal.close()
    return path


def result() -> TrainResult:
    stats = TrainStats(rollouts=6, groups=3, flat_groups=1, policy_tokens=400, steps=3)
    return TrainResult(
        policy=PolicyRef(path="x", digest=DIGEST),
        reward_first=0.25,
        reward_mean=0.3,
        kl=0.0123,
        kl_k3=None,
        stats=stats,
    )


def write_round(
    path: Path, journal: Journal, number: int, found: Diagnosis, outcome: str, done: tuple[str, ...]
) -> RoundRecord:
    mixture = Mixture(
        round=number,
        target="S2",
        groups={"target": 2, "mix": 1, "e2e": 1},
        mix=("S1",),
        reason="S2 is weakest, at 30.0",
    )
    decision = Decision(
        round=number,
        outcome=outcome,  # type: ignore[arg-type]
        gain=None,
        checks=(
            Check(name="overall", value=0.132, limit=-0.01, ok=True),
            Check(name="stage S1", value=None, limit=-0.03, ok=outcome == "promoted"),
            Check(name="finite", value=None, limit=None, ok=True),
        ),
        reason=f"because of {outcome}",
        stop=number == 2,
        stop_reason="all 2 rounds done",
    )
    journal.once(f"mixture:{number}", lambda: mixture.model_dump(mode="json"))
    if "train" in done:
        record_round(path / "rounds" / f"{number:02d}")
        journal.once(f"train:{number}", lambda: result().model_dump(mode="json"))
    if "candidate" in done:
        journal.once(f"evaluate:{number}", lambda: found.model_dump(mode="json"))
    if "decision" in done:
        journal.once(f"decision:{number}", lambda: decision.model_dump(mode="json"))
    return RoundRecord(
        round=number, mixture=mixture, diagnosis=found, signals=Signals(finite=True, reward=0.3), decision=decision
    )


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    def make(last: str = "summary") -> Path:
        return build_run(tmp_path / f"run-{last}", last)

    return make


@pytest.fixture
def finished(make_run: Callable[..., Path]) -> Path:
    return make_run()


@pytest.fixture
def hostile() -> str:
    return HOSTILE


@pytest.fixture
def phases() -> tuple[str, ...]:
    return PHASES
