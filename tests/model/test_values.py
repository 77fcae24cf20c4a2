from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bat_core.model.base import canonical_json, digest_of
from bat_core.model.decision import Decision, Signals
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History, RoundRecord
from bat_core.model.message import Message
from bat_core.model.mixture import Mixture
from bat_core.model.receipt import Receipt
from bat_core.model.reward import Reward
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.model.verdict import ItemVerdict

D = "sha256:" + "0" * 64
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def diagnosis(**values: object) -> Diagnosis:
    plain = {
        "policy": D,
        "suite": D,
        "overall": 0.5,
        "agentic": 0.5,
        "stages": {"A": 0.5},
        "tracks": {"t": 0.5},
        "n": 4,
    }
    return Diagnosis.model_validate(plain | values)


def state(**values: object) -> StageState:
    rubric = Rubric(stage="A", items=(RubricItem(id="A.a", criterion="done?", verifier="check:done"),))
    receipt = Receipt(
        seq=0, provider="p", language="bash", code="ls", status="exited", rc=0,
        stdout="", stderr="", out_sha="", err_sha="", ws_before="", ws_after="", prev="", mac="m",
    )  # fmt: skip
    plain: dict[str, object] = {
        "id": "s", "task": Task(id="t", domain="d", track="x", seed=1), "focus": "A", "stratum": Stratum.SUCCESS,
        "snapshot": SnapshotRef(root=D), "messages": (Message(role="user", content="go"),),
        "receipts": (receipt,), "rubrics": (rubric,),
    }  # fmt: skip
    return StageState.model_validate(plain | values)


@given(JSON)
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: object) -> None:
    def turned(one: object) -> object:
        if isinstance(one, dict):
            return {key: turned(one[key]) for key in reversed(list(one))}
        return [turned(part) for part in one] if isinstance(one, list) else one

    assert canonical_json(value) == canonical_json(turned(value))
    assert digest_of(value) == digest_of(turned(value))


def test_a_digest_tells_bytes_from_text_and_values_from_values() -> None:
    assert len({digest_of(b"a"), digest_of("a"), digest_of(["a"]), digest_of({"a": 1})}) == 4
    assert digest_of(b"").startswith("sha256:e3b0c442")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.5, -0.1])
def test_a_reward_is_a_number_in_the_unit_interval_or_null(bad: float) -> None:
    with pytest.raises(ValidationError):
        Reward(value=bad)
    assert Reward(value=None).value is None


def test_values_are_frozen_and_closed() -> None:
    reward = Reward(value=0.5)
    with pytest.raises(ValidationError):
        reward.value = 1.0
    with pytest.raises(ValidationError):
        Reward.model_validate({"value": 0.5, "bonus": 1})


def test_a_null_verdict_needs_a_reason() -> None:
    with pytest.raises(ValidationError, match="a null verdict needs a reason"):
        ItemVerdict(item="A.a", passed=None)
    assert ItemVerdict(item="A.a", passed=None, reason="the judge was away").passed is None


def test_a_state_is_the_same_state_under_another_key_of_receipts() -> None:
    one = state()
    other = state(receipts=(one.receipts[0].model_copy(update={"mac": "other", "prev": "x"}),))
    assert one.digest == other.digest
    assert one.digest != state(receipts=(one.receipts[0].model_copy(update={"rc": 1}),)).digest
    assert one.digest != state(focus="B").digest
    assert not one.is_e2e and state(focus="E2E").is_e2e


def test_the_contract_is_part_of_a_groups_identity() -> None:
    heavier = Rubric(stage="A", items=(RubricItem(id="A.a", criterion="done?", verifier="check:done", weight=2),))
    assert state().contract_digest != state(rubrics=(heavier,)).contract_digest


@pytest.mark.parametrize(
    "values",
    [
        {"stages": {"held-out task 7: find the mass": 0.5}},
        {"stages": {"A": 0.5, "x" * 33: 0.5}},
        {"tracks": {"../t": 0.5}},
        {"failures": {"the answer is 7": 1}},
        {"policy": "my policy"},
        {"note": "text"},
        {"overall": 1.2},
        {"n": -1},
        {"gains": {"overall": {"mean": 0, "low": 0, "high": 0, "n": 1, "why": "text"}}},
        {"gains": {"overall": {"mean": 2, "low": 0, "high": 0, "n": 1}}},
    ],
)
def test_no_text_can_ride_in_a_diagnosis(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        diagnosis(**values)


def test_the_best_diagnosis_is_the_last_promoted_one() -> None:
    def record(number: int, outcome: str) -> RoundRecord:
        return RoundRecord(
            round=number,
            mixture=Mixture(round=number, target="A", groups={}, mix=(), reason="r"),
            diagnosis=diagnosis(n=number),
            signals=Signals(finite=True),
            decision=Decision.model_validate(
                {"round": number, "outcome": outcome, "gain": 0, "checks": (), "reason": "r"}
            ),
        )

    first = diagnosis(n=99)
    assert History(coldstart=first).best == first
    rounds = (record(1, "promoted"), record(2, "held"), record(3, "promoted"), record(4, "rolled_back"))
    assert History(coldstart=first, rounds=rounds).best.n == 3
    assert History(coldstart=first, rounds=rounds[1:2]).best == first
