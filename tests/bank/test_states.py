"""Cutting, slicing and admitting the expert's runs through real tasks, in real sandboxes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bat_core.bank.admit import refusal
from bat_core.bank.produce import LogOrder, Order, produce, record
from bat_core.bank.slices import slices
from bat_core.bank.states import Cut, cut
from bat_core.bank.trajectory import MAX_ACTS, Trajectory, fault_stage, solve, stratum_at
from bat_core.errors import SynthesisError
from bat_core.hooks.actor import Act, Actor
from bat_core.model.message import Message, ToolCall
from bat_core.model.reward import Reward, StageScore
from bat_core.model.rollout import Rollout
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.rollout import lab as labs
from bat_core.rollout.lab import Lab
from bat_core.verify.chain import verify_chain

STAGES = ("S1", "S2", "S3", "S4", "S5")


class Until(Actor):
    """The expert, who goes home early."""

    def __init__(self, expert: Actor, stage: str) -> None:
        self.expert, self.stage = expert, stage

    def act(self, history: Sequence[Message]) -> Act | None:
        found = self.expert.act(history)
        return None if found is None or found.stage >= self.stage else found


class Endless(Actor):
    """Never has enough."""

    def act(self, history: Sequence[Message]) -> Act | None:
        return Act("S1", Message(role="assistant", content="hm"))


class Mumbling(Actor):
    """Calls what there is not."""

    def act(self, history: Sequence[Message]) -> Act | None:
        return Act("S1", Message(role="assistant", tool_calls=(ToolCall(name="nothing", arguments={}),)))


def of(runs: list[Trajectory], stratum: Stratum, stage: str | None, lab: Lab) -> Trajectory:
    return next(r for r in runs if r.task.stratum is stratum and fault_stage(lab, r.task) == stage)


def test_every_task_gives_one_state_a_stage_and_one_for_the_whole(cuts: list[Cut], runs: list[Trajectory]) -> None:
    for run in runs:
        mine = [one.state for one in cuts if one.state.task == run.task]
        assert [state.focus for state in mine] == [E2E, *STAGES]
        assert [state.id for state in mine] == [f"{run.task.id}:{state.focus}" for state in mine]
        assert [len(state.rubrics) for state in mine] == [5, 1, 1, 1, 1, 1]
        assert [state.rubrics[0].stage for state in mine[1:]] == list(STAGES)


def test_a_state_begins_where_its_stage_begins(lab: Lab, runs: list[Trajectory]) -> None:
    run = of(runs, Stratum.SUCCESS, None, lab)
    acts = [step.act for step in run.steps]
    for one in cut(lab, run):
        begin = 0 if one.state.is_e2e else next(i for i, act in enumerate(acts) if act.stage == one.state.focus)
        assert one.state.stratum is Stratum.SUCCESS
        assert one.state.snapshot == run.steps[begin].before
        assert one.state.messages == run.messages(begin) and one.state.receipts == run.receipts(begin)
        if begin:
            assert one.state.receipts[-1].ws_after == one.state.snapshot.root, "the workspace the history left"
        assert lab.store.has(one.state.snapshot) and one.expert.final is not None and lab.store.has(one.expert.final)


def test_a_stage_state_ends_with_the_stage_in_the_words_of_the_contract(lab: Lab, runs: list[Trajectory]) -> None:
    run = of(runs, Stratum.SUCCESS, None, lab)
    whole, *stages = list(cut(lab, run))
    assert [*run.opening, *whole.expert.messages] == list(run.messages(len(run.steps)))
    for one in stages:
        *acts, last = [message for message in one.expert.messages if message.role == "assistant"]
        assert not last.tool_calls and all(act.tool_calls for act in acts)
        own = [s.act.message for s in run.steps if s.act.stage == one.state.focus]
        assert acts == [message for message in own if message.tool_calls]
        stage = next(s for s in lab.contract.stages() if s.id == one.state.focus)
        assert last.content == (own[-1].content if not own[-1].tool_calls else lab.contract.closing(stage))


def test_recovery_begins_right_behind_the_symptom(lab: Lab, runs: list[Trajectory], cuts: list[Cut]) -> None:
    symptoms = {fault.id: fault.symptom for fault in lab.domain.faults()}
    found = [one.state for one in cuts if not one.state.is_e2e and one.state.stratum is Stratum.RECOVERY]
    assert {state.focus for state in found} == {"S2", "S3", "S4"}
    for state in found:
        assert state.messages[-1].role == "tool" and symptoms[state.task.faults[0]] in state.messages[-1].content
        run = next(run for run in runs if run.task == state.task)
        steps = [step for step in run.steps if step.act.stage == state.focus]
        first = next(step for step in steps if step.act.kind == "symptom")
        assert state.messages[-1] == first.observation and first.receipts[-1] == state.receipts[-1]
        assert first.receipts[-1].ws_after == state.snapshot.root


def test_a_task_is_as_faulty_as_the_stage_where_its_fault_shows(lab: Lab, cuts: list[Cut]) -> None:
    for one in cuts:
        task = one.state.task
        faulty = task.stratum if one.state.is_e2e or one.state.focus == fault_stage(lab, task) else Stratum.SUCCESS
        assert one.state.stratum is faulty
        if not one.state.is_e2e:
            assert stratum_at(lab, task, one.state.focus) is faulty


def test_no_prompt_holds_what_only_graders_know(cuts: list[Cut]) -> None:
    for one in cuts:
        said = " ".join(message.content for message in (*one.state.messages, *one.expert.messages))
        assert str(one.state.task.private["seed"]) not in said


def test_receipts_of_a_run_are_one_chain(lab: Lab, runs: list[Trajectory]) -> None:
    for run in runs:
        receipts = run.receipts(len(run.steps))
        assert verify_chain(lab.key, receipts) and {r.provider for r in receipts} == {"bubblewrap"}
        assert len(receipts) == sum(bool(step.act.message.tool_calls) for step in run.steps)


def test_a_slice_is_the_whole_history_and_one_target(lab: Lab, cuts: list[Cut]) -> None:
    for one in cuts[:6]:
        made = list(slices(lab, one))
        prompt = lab.harness.prompt(lab.contract, one.state)
        whole = [*prompt, *one.expert.messages]
        assert [part.target for part in made] == [m for m in one.expert.messages if m.role == "assistant"]
        assert len({part.id for part in made}) == len(made)
        for part in made:
            assert part.target.role == "assistant"
            assert list(part.messages) == whole[: len(part.messages)] and whole[len(part.messages)] == part.target
            assert (part.trajectory, part.stage) == (one.state.task.id, one.state.focus)
        assert list(made[0].messages) == list(prompt)


def test_what_the_expert_can_do_is_admitted_and_doing_nothing_earns_nothing(lab: Lab, cuts: list[Cut]) -> None:
    good = [one for one in cuts if one.state.stratum is not Stratum.FAILURE or one.state.is_e2e]
    assert [why for one in good if (why := lab.run(refusal(lab, one)))] == []


@pytest.mark.parametrize(("stage", "item"), [("S3", "S3."), ("S5", "S5.")])
def test_an_expert_who_stops_early_is_refused_with_what_is_missing(
    lab: Lab, small_tasks: list[Task], stage: str, item: str
) -> None:
    run = lab.run(solve(lab, small_tasks[0], Until(lab.domain.expert(small_tasks[0]), stage)))
    made = list(cut(lab, run))
    assert [one.state.focus for one in made] == [E2E, *STAGES[: STAGES.index(stage)]]
    why = lab.run(refusal(lab, made[0]))
    assert why.startswith("the expert's own run fails ") and item in why and "(" in why and "\n" not in why
    assert lab.run(refusal(lab, made[-1])) == "", "the stages before are as good as ever"


def test_a_state_that_pays_for_nothing_is_refused(lab: Lab, cuts: list[Cut], monkeypatch: pytest.MonkeyPatch) -> None:
    class Generous:
        async def score(self, state: StageState, rollout: Rollout, *, whole: bool) -> Reward:
            return Reward(value=1.0, items=1, stages=(StageScore(stage="S1", score=1.0),))

    monkeypatch.setattr(lab, "scorer", Generous())
    assert lab.run(refusal(lab, cuts[1])) == "doing nothing earns 1.0 (S1)"


def test_an_actor_without_an_end_or_a_proper_call_gives_no_state(lab: Lab, small_tasks: list[Task]) -> None:
    with pytest.raises(SynthesisError, match=f"did not finish task {small_tasks[0].id} in {MAX_ACTS} acts"):
        lab.run(solve(lab, small_tasks[0], Endless()))
    with pytest.raises(SynthesisError, match="malformed call: error: no tool named nothing"):
        lab.run(solve(lab, small_tasks[0], Mumbling()))


def test_a_failure_state_has_failed_attempts_behind_it(
    lab: Lab, small_tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(labs._OPEN, lab.spec.model_dump_json(), lab)
    longer = 0
    for task in (task for task in small_tasks if task.stratum is Stratum.FAILURE):
        made = produce(Order(lab.spec, task))
        assert made.refused == () and len(made.admitted) == 6 and all(one.slices for one in made.admitted)
        own = [one.state for one in made.admitted if one.state.stratum is Stratum.FAILURE]
        assert [state.focus for state in own] == [E2E, fault_stage(lab, task)]
        clean = lab.run(solve(lab, task, lab.domain.expert(task)))
        plain = next(one.state for one in cut(lab, clean) if one.state.focus == own[1].focus)
        longer += len(own[1].messages) - len(plain.messages)
    assert longer > 0


def test_an_expert_that_fails_in_a_worker_is_a_refusal_and_no_crash(
    lab: Lab, small_tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(labs._OPEN, lab.spec.model_dump_json(), lab)
    monkeypatch.setattr(lab.domain, "expert", lambda task, slips=None: Endless(), raising=False)
    made = produce(Order(lab.spec, small_tasks[0]))
    assert made.admitted == () and "did not finish task" in made.refused[0]


def test_a_log_for_a_base_is_the_novice_s_or_the_expert_s(
    lab: Lab, small_tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(labs._OPEN, lab.spec.model_dump_json(), lab)
    other = 0
    for task in small_tasks:
        clean, mixed, again = (record(LogOrder(lab.spec, task, novice)) for novice in (False, True, True))
        assert clean[0][0] == mixed[0][0] == E2E
        assert mixed == again
        other += mixed[0][1] != clean[0][1]
    assert other > len(small_tasks) / 2
