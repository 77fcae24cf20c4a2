from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bat_core.config.schema import Config, GateConfig
from bat_core.curriculum.gate import checks
from bat_core.curriculum.weakest_stage import WeakestStage
from bat_core.model.decision import Decision, Signals
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History, RoundRecord
from bat_core.model.stage import Stage

Make = Callable[..., Diagnosis]
FINE = Signals(finite=True, kl=0.01, kl_k3=0.01, reward=0.5)


def curriculum(**gate: object) -> WeakestStage:
    return WeakestStage(Config.model_validate({"gate": gate}))


def broken(found: Decision) -> list[str]:
    return [check.name for check in found.checks if not check.ok]


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"overall": -0.0101}, "overall"),
        ({"task": -0.0301}, "task"),
        ({"tracks": {"t": -0.0501}}, "track t"),
        ({"gains": {"A": 0.0, "B": -0.0301, "C": 0.0}}, "stage B"),
        ({"overall": -0.2001}, "catastrophic"),
    ],
)
@pytest.mark.parametrize("scale", ["interval", "point"])
def test_every_limit_is_broken_just_beyond_it_and_not_at_it(
    diagnosis: Make,
    history: Callable[..., History],
    stages: list[Stage],
    values: dict[str, object],
    name: str,
    scale: str,
) -> None:
    def at(shift: float) -> dict[str, object]:
        return {
            key: value + shift if isinstance(value, float) else {k: v + shift if v else v for k, v in value.items()}  # type: ignore[attr-defined]
            for key, value in values.items()
        }

    decide = curriculum(scale=scale).decide
    before = history(diagnosis())
    assert name in broken(decide(before, diagnosis(**values), FINE, stages))
    assert name not in broken(decide(before, diagnosis(**at(0.0001)), FINE, stages))


def test_a_stages_own_guard_counts(diagnosis: Make, history: Callable[..., History], stages: list[Stage]) -> None:
    tight = [stages[0].model_copy(update={"guard": 0.001}), *stages[1:]]
    candidate = diagnosis(overall=0.1, gains={"A": -0.002, "B": 0.0, "C": 0.0})
    assert curriculum().decide(history(diagnosis()), candidate, FINE, stages).outcome == "promoted"
    decision = curriculum().decide(history(diagnosis()), candidate, FINE, tight)
    assert decision.outcome == "held" and decision.reason == "stage A -0.002 is beyond -0.001"


def test_the_interval_decides_where_it_is_asked_for(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage]
) -> None:
    wide = diagnosis(overall=0.02, gains={"A": -0.05, "B": 0.1, "C": 0.0}, half=0.03)
    before = history(diagnosis())
    assert curriculum(scale="interval").decide(before, wide, FINE, stages).outcome == "promoted"
    assert curriculum(scale="point").decide(before, wide, FINE, stages).outcome == "held"


def test_gain_must_be_above_zero(diagnosis: Make, history: Callable[..., History], stages: list[Stage]) -> None:
    before = history(diagnosis())
    assert curriculum().decide(before, diagnosis(overall=0.0), FINE, stages).outcome == "held"
    promoted = curriculum().decide(before, diagnosis(overall=1e-6), FINE, stages)
    assert promoted.outcome == "promoted" and promoted.gain == 1e-6


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"overall": None}, "overall"),
        ({"overall": 0.1, "gains": {"A": 0.1, "B": None, "C": 0.1}}, "stage B"),
        ({"overall": 0.1, "task": None}, "task"),
        ({"overall": 0.1, "tracks": {"u": 0.1}}, "track t"),
    ],
)
def test_what_could_not_be_measured_is_not_waved_through(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage], values: dict[str, object], name: str
) -> None:
    best = diagnosis().model_copy(update={"task": 0.5, "tracks": {"t": 0.5, "u": None}})
    full = {"task": 0.0, "tracks": {"t": 0.0}} | values
    decision = curriculum().decide(history(best), diagnosis(**full), FINE, stages)
    assert decision.outcome == "held"
    assert broken(decision) == [name]
    assert decision.reason == f"{name} could not be measured"
    (check,) = [check for check in decision.checks if check.name == name]
    assert check.value is None and check.limit is not None and check.limit < 0


def test_a_domain_without_task_scores_has_no_check_of_them(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage]
) -> None:
    decision = curriculum().decide(history(diagnosis()), diagnosis(overall=0.1), FINE, stages)
    assert [check.name for check in decision.checks] == [
        "overall", "stage A", "stage B", "stage C", "catastrophic", "finite", "kl",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        (Signals(finite=False), "finite training metrics are not finite"),
        (Signals(finite=False, reason="loss was nan at step 3"), "loss was nan at step 3"),
        (Signals(finite=True, kl=0.51), "kl +0.510 is beyond +0.500"),
    ],
)
def test_training_that_went_wrong_is_rolled_back_whatever_it_gained(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage], signals: Signals, reason: str
) -> None:
    decision = curriculum().decide(history(diagnosis()), diagnosis(overall=0.3), signals, stages)
    assert (decision.outcome, decision.reason) == ("rolled_back", reason)


def test_kl_that_was_not_measured_or_lies_at_tau_is_no_reason(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage]
) -> None:
    for kl in (None, 0.5):
        decision = curriculum().decide(
            history(diagnosis()), diagnosis(overall=0.3), Signals(finite=True, kl=kl), stages
        )
        assert decision.outcome == "promoted"


def test_a_catastrophe_is_rolled_back_at_once(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage]
) -> None:
    assert curriculum().decide(history(diagnosis()), diagnosis(overall=-0.3), FINE, stages).outcome == "rolled_back"


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience_counts_rounds_without_a_promotion(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage], patience: int
) -> None:
    decide = curriculum(patience=patience).decide
    flat = diagnosis(overall=0.0)
    rounds: list[tuple[str, Diagnosis]] = []
    for _ in range(2 * patience):
        rounds.append((decide(history(diagnosis(), *rounds), flat, FINE, stages).outcome, flat))
    assert [outcome for outcome, _ in rounds] == [*["held"] * (patience - 1), "rolled_back"] * 2
    again = decide(history(diagnosis(), *rounds, ("promoted", flat)), flat, FINE, stages)
    assert again.outcome == ("held" if patience > 1 else "rolled_back")


def test_the_last_round_stops_whatever_its_outcome(
    diagnosis: Make, history: Callable[..., History], stages: list[Stage]
) -> None:
    short = WeakestStage(Config.model_validate({"loop": {"rounds": 2}}))
    first = short.decide(history(diagnosis()), diagnosis(overall=0.1), FINE, stages)
    second = short.decide(history(diagnosis(), ("promoted", diagnosis())), diagnosis(overall=0.1), FINE, stages)
    assert (first.stop, first.stop_reason) == (False, "")
    assert (second.stop, second.stop_reason, second.outcome) == (True, "all 2 rounds done", "promoted")


@pytest.mark.parametrize("on_hold", ["continue", "restart"])
@pytest.mark.parametrize("scale", ["interval", "point"])
def test_ten_rounds_of_a_small_loss_are_never_promoted(
    diagnosis: Make, stages: list[Stage], on_hold: str, scale: str
) -> None:
    policy = curriculum(on_hold=on_hold, scale=scale)
    start = diagnosis(overall=None, gains={})
    past = History(coldstart=start)
    for _ in range(10):
        mixture = policy.prescribe(past, stages)
        candidate = diagnosis(overall=-0.0099, gains={"A": -0.0099, "B": -0.0099, "C": -0.0099})
        decision = policy.decide(past, candidate, FINE, stages)
        record = RoundRecord(round=mixture.round, mixture=mixture, diagnosis=candidate, signals=FINE, decision=decision)
        past = History(coldstart=start, rounds=(*past.rounds, record))
    assert {record.decision.outcome for record in past.rounds} == {"held", "rolled_back"}
    assert past.best == start and past.rounds[-1].decision.stop


def plain_gate(candidate: Diagnosis, best: Diagnosis, signals: Signals, stages: list[Stage], gate: GateConfig) -> str:
    """The gate of the method in one go: names of broken limits, sorted."""
    gains = [("overall", candidate.gains.get("overall"), gate.overall)]
    if best.task is not None or "task" in candidate.gains:
        gains.append(("task", candidate.gains.get("task"), gate.task))
    for track in set(candidate.track_gains) | {t for t, score in best.tracks.items() if score is not None}:
        gains.append((f"track {track}", candidate.track_gains.get(track), gate.track))
    for stage in stages:
        gains.append((f"stage {stage.id}", candidate.stage_gains.get(stage.id), stage.guard))
    if "overall" in candidate.gains:
        gains.append(("catastrophic", candidate.gains["overall"], gate.catastrophic))
    bad = [
        name
        for name, gain, limit in gains
        if gain is None or (gain.high if gate.scale == "interval" else gain.mean) < -limit
    ]
    bad += ["finite"] * (not signals.finite) + ["kl"] * (signals.kl is not None and signals.kl > gate.tau)
    return " ".join(sorted(bad))


GAIN = st.floats(-0.4, 0.4) | st.none()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_checks_are_those_of_the_plain_gate(diagnosis: Make, stages: list[Stage], data: st.DataObject) -> None:
    draw = data.draw
    candidate = diagnosis(
        overall=draw(GAIN),
        task=draw(GAIN),
        gains={s.id: draw(GAIN) for s in stages},
        tracks={t: draw(GAIN) for t in draw(st.sets(st.sampled_from("xyz")))},
        half=draw(st.floats(0, 0.2)),
    )
    best = diagnosis().model_copy(
        update={"task": draw(st.none() | st.just(0.5)), "tracks": {"x": draw(st.none() | st.just(0.5))}}
    )
    signals = Signals(finite=draw(st.booleans()), kl=draw(st.none() | st.floats(0, 1)))
    gate = GateConfig(scale=draw(st.sampled_from(["interval", "point"])))
    found = checks(candidate, best, signals, stages, gate)
    assert " ".join(sorted(check.name for check in found if not check.ok)) == plain_gate(
        candidate, best, signals, stages, gate
    )
