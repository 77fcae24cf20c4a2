from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import BatError, ContractError
from bat_core.hooks.contract import StageContract
from bat_core.hooks.domain import Domain
from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.evidence import Evidence
from bat_core.model.message import Message, ToolCall
from bat_core.model.receipt import Receipt
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.stage import Stage
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.model.verdict import ItemVerdict
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.verify.chain import sign
from bat_core.verify.integrity import breach
from bat_core.verify.scorer import Scorer


class Done(RubricVerifier):
    """Passes when `done` says so in the sealed files."""

    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        return ItemVerdict(item=item.id, passed=evidence.files.get("done") == evidence.task.private["answer"].encode())


class Answers(RubricVerifier):
    """Returns or raises whatever it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: ItemVerdict = self.answer
        return answer


class Contract(StageContract):
    name = "two"

    def stages(self) -> Sequence[Stage]:
        return [Stage(id=i, title=i, goal=f"Do {i}.", weight=w) for i, w in (("A", 0.25), ("B", 0.75))]

    def tracks(self) -> Sequence[str]:
        return ["t"]

    def rubric(self, task: Task, stage: str, stratum: Stratum) -> Rubric:
        raise NotImplementedError

    def workspace(self, task: Task) -> Mapping[str, bytes]:
        return {}

    def protected(self) -> Sequence[str]:
        return ["given/"]

    def introduction(self, task: Task) -> str:
        return ""

    def task_score(self, task: Task, files: Mapping[str, bytes]) -> float | None:
        return 1.0 if "done" in files else 0.0


class Little(Domain):
    def __init__(self, **checks: RubricVerifier) -> None:
        self.checks = {"done": Done(), **checks}

    def contract(self) -> StageContract:
        return Contract()

    def synthesizer(self) -> Any:
        raise NotImplementedError

    def expert(self, task: Task, slips: Any = None) -> Any:
        raise NotImplementedError

    def verifiers(self) -> Mapping[str, RubricVerifier]:
        return self.checks


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store")


def rubric(stage: str, check: str = "done") -> Rubric:
    return Rubric(stage=stage, items=(RubricItem(id=f"{stage}.a", criterion="?", verifier=f"check:{check}"),))


def state(store: SnapshotStore, *rubrics: Rubric, files: Mapping[str, bytes] | None = None) -> StageState:
    return StageState(
        id="s",
        task=Task(id="t", domain="little", track="t", seed=0, private={"answer": "42"}),
        focus="E2E" if len(rubrics) > 1 else rubrics[0].stage,
        stratum=Stratum.SUCCESS,
        snapshot=store.put_files({"given/x": b"1"} if files is None else files),
        messages=(),
        rubrics=rubrics,
    )


def rollout(store: SnapshotStore, files: Mapping[str, bytes], **values: Any) -> Rollout:
    return Rollout(state="s", final=store.put_files(files), **values)


def value(store: SnapshotStore, files: Mapping[str, bytes], *rubrics: Rubric, **checks: RubricVerifier) -> Any:
    found = asyncio.run(Scorer(Little(**checks), store).score(state(store, *rubrics), rollout(store, files)))
    return found


def test_a_stage_is_scored_from_the_sealed_files(store: SnapshotStore) -> None:
    assert value(store, {"given/x": b"1", "done": b"42"}, rubric("A")).value == 1.0
    assert value(store, {"given/x": b"1", "done": b"41"}, rubric("A")).value == 0.0


def test_an_e2e_rollout_is_half_stages_and_half_task(store: SnapshotStore) -> None:
    wrong = Answers(ItemVerdict(item="B.a", passed=False))
    found = value(store, {"given/x": b"1", "done": b"42"}, rubric("A"), rubric("B", "wrong"), wrong=wrong)
    assert found.value == pytest.approx(0.5 * 0.25 + 0.5 * 1.0)
    assert found.task == 1.0 and [stage.score for stage in found.stages] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ValueError("no such slice"), "verifier check:odd raised ValueError: no such slice"),
        (TimeoutError(), "verifier check:odd raised TimeoutError: "),
        (True, "verifier check:odd returned bool instead of a verdict"),
        (None, "verifier check:odd returned NoneType instead of a verdict"),
        (ItemVerdict(item="Z.z", passed=True), "verifier check:odd judged 'Z.z' instead of 'A.a'"),
    ],
)
def test_a_verifier_that_breaks_judges_nothing(store: SnapshotStore, answer: Any, reason: str) -> None:
    found = value(store, {"given/x": b"1"}, rubric("A", "odd"), odd=Answers(answer))
    assert found.value is None
    assert found.stages[0].verdicts[0].reason == reason


def test_a_check_that_the_domain_lacks_stops_the_run(store: SnapshotStore) -> None:
    with pytest.raises(ContractError, match=r"item A\.a names the check 'nope', which the domain does not have; known"):
        value(store, {"given/x": b"1"}, rubric("A", "nope"))


def test_an_unknown_verifier_stops_the_run(store: SnapshotStore) -> None:
    odd = Rubric(stage="A", items=(RubricItem(id="A.a", criterion="?", verifier="chek"),))
    with pytest.raises(BatError, match="no plugin named 'chek' of kind verifiers; did you mean 'check'"):
        value(store, {}, odd)


class Bare(RubricVerifier):
    """Takes no settings."""

    def __init__(self) -> None: ...

    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        raise NotImplementedError


def test_a_verifier_that_can_not_be_made_stops_the_run_in_one_line() -> None:
    from bat_core.verify.scorer import _made

    with pytest.raises(BatError, match=r"Bare can't be made: TypeError: .*; take the run's verify settings"):
        _made(Bare, object())


def test_a_lost_rollout_is_never_scored(store: SnapshotStore) -> None:
    lost = Rollout(state="s", end="lost", reason="the sandbox died")
    found = asyncio.run(Scorer(Little(), store).score(state(store, rubric("A")), lost))
    assert found.value is None and found.reason == "rollout lost: the sandbox died"


def receipts(key: bytes, count: int, before: tuple[Receipt, ...] = ()) -> tuple[Receipt, ...]:
    """What a harness with `key` writes."""
    written = list(before)
    for seq in range(len(before), len(before) + count):
        bare = Receipt(
            seq=seq, provider="p", language="bash", code="true", status="exited", rc=0, stdout="", stderr="",
            out_sha="", err_sha="", ws_before="a", ws_after="b", prev=written[-1].mac if written else "",
        )  # fmt: skip
        written.append(bare.model_copy(update={"mac": sign(key, bare)}))
    return tuple(written[len(before) :])


OURS = b"k" * 32
HISTORY = receipts(OURS, 2)
OWN = receipts(OURS, 2, HISTORY)
FORGED = receipts(b"guess" * 6, 1, HISTORY)


@pytest.mark.parametrize(
    ("history", "own", "sound"),
    [
        (HISTORY, OWN, True),
        (HISTORY, (), True),
        ((), (), True),
        (HISTORY, OWN[1:], False),
        (HISTORY[1:], OWN, False),
        (HISTORY, (OWN[0], OWN[1].model_copy(update={"rc": 1})), False),
        ((HISTORY[0].model_copy(update={"stdout": "fine"}), HISTORY[1]), OWN, False),
        (HISTORY, FORGED, False),
        (receipts(b"another run's key", 2), (), False),
    ],
)
def test_a_broken_chain_of_receipts_is_ours_and_nobody_judges_by_it(
    store: SnapshotStore, history: tuple[Receipt, ...], own: tuple[Receipt, ...], sound: bool
) -> None:
    asked: list[str] = []

    class Asked(Done):
        async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
            asked.append(item.id)
            return await super().verify(item, evidence)

    begun = state(store, rubric("A", "asked")).model_copy(update={"receipts": history})
    ended = rollout(store, {"given/x": b"1", "done": b"42"}, receipts=own)
    found = asyncio.run(Scorer(Little(asked=Asked()), store, OURS).score(begun, ended))
    if sound:
        assert (found.value, asked) == (1.0, ["A.a"])
    else:
        assert (found.value, found.breach, asked) == (None, "", [])
        assert found.reason == "the chain of receipts is broken: they are not what this run's harness wrote"


def test_touching_protected_files_is_worth_nothing(store: SnapshotStore) -> None:
    for files in ({"done": b"42"}, {"given/x": b"2", "done": b"42"}, {"given/x": b"1", "given/y": b"", "done": b"42"}):
        found = value(store, files, rubric("A"))
        assert found.value == 0.0 and found.breach.startswith("protected path given/")


def test_a_verdict_file_in_the_workspace_has_no_effect(store: SnapshotStore) -> None:
    files = {"given/x": b"1", "reward.json": b'{"value": 1.0}', "verdict": b"pass"}
    assert value(store, files, rubric("A")).value == 0.0


def test_what_replaces_a_protected_file_by_a_link_is_a_breach() -> None:
    task = Task(id="t", domain="d", track="t", seed=0)
    evidence = Evidence(task=task, focus="A", start={}, files={}, odd=("given/x",))
    assert breach(evidence, ["given/"]) == "protected path given/x was replaced by something that is not a file"
    assert breach(evidence, []) == ""


def test_the_final_text_is_the_last_message_without_a_call(store: SnapshotStore) -> None:
    scorer = Scorer(Little(), store)
    call = Message(role="assistant", content="look", tool_calls=(ToolCall(name="x", arguments={}),))
    end = Message(role="assistant", content="stage done")
    one = state(store, rubric("A"))
    assert scorer.seal(one, rollout(store, {}, messages=(call, end))).final == "stage done"
    assert scorer.seal(one, rollout(store, {}, messages=(call,))).final == ""
    assert scorer.seal(one, rollout(store, {})).final == ""
