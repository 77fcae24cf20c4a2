"""Known cheats against real tasks in real sandboxes, and a domain in which one pays."""

from __future__ import annotations

from pathlib import Path

import pytest

from bat_core.bank.admit import PROSE, refusal, unrestored
from bat_core.bank.cheating import Acts, cheat_that_pays, stage_cheat_that_pays
from bat_core.bank.produce import Order, Produced, produce, sampled
from bat_core.bank.proofs import Proofs, families
from bat_core.bank.states import Cut
from bat_core.bank.trajectory import Trajectory
from bat_core.bank.trials import Trials
from bat_core.model.message import Message
from bat_core.model.rollout import Rollout
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.task import Task
from bat_core.rollout import lab as labs
from bat_core.rollout.lab import Lab, LabSpec


def whole_of(cuts: list[Cut], run: Trajectory) -> Cut:
    return next(one for one in cuts if one.state.is_e2e and one.state.task == run.task)


@pytest.mark.parametrize("place", [0, 1])
def test_no_known_cheat_pays(lab: Lab, runs: list[Trajectory], cuts: list[Cut], place: int) -> None:
    assert lab.run(cheat_that_pays(lab, whole_of(cuts, runs[place]), runs[place])) == ""


def test_no_cheat_pays_in_a_single_stage(lab: Lab, cuts: list[Cut]) -> None:
    for focus in ("S1", "S4"):
        one = next(one for one in cuts if one.state.focus == focus)
        assert lab.run(stage_cheat_that_pays(lab, one)) == ""


def test_a_cheat_that_does_the_work_is_called_by_its_name(
    lab: Lab, runs: list[Trajectory], cuts: list[Cut], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs[0]
    thief = Acts([step.act for step in run.steps])
    monkeypatch.setattr(type(lab.domain), "cheats", lambda self, task: [thief])
    why = lab.run(cheat_that_pays(lab, whole_of(cuts, run), run))
    assert why.startswith("the cheat script earns 1.000 in stages, ") and "an honest run that fails earns" in why
    monkeypatch.setitem(labs._OPEN, lab.spec.model_dump_json(), lab)
    made = produce(Order(lab.spec, run.task, cheats=True))
    assert made.admitted == () and made.paying == why and len(made.refused) == 6
    assert all(one.cell and why in one.reason for one in made.refused)


def test_prose_alone_earns_nothing_anywhere(lab: Lab, cuts: list[Cut]) -> None:
    for one in cuts:
        said = (Message(role="assistant", content=PROSE),)
        idle = Rollout(state=one.state.id, messages=said, final=one.state.snapshot)
        reward = lab.run(lab.scorer.score(one.state, idle, whole=True))
        assert reward.value == 0 and all(stage.score == 0 for stage in reward.stages)


def test_a_workspace_that_does_not_come_back_refuses_its_state(lab: Lab, cuts: list[Cut]) -> None:
    sound = cuts[0].state.snapshot
    gone = SnapshotRef(root="sha256:" + "0" * 64)
    found = lab.run(unrestored(lab, [sound, gone, sound]))
    assert list(found) == [gone.root] and found[gone.root].startswith("its workspace does not come back: ")
    assert lab.run(refusal(lab, cuts[0])) == ""


def test_few_tasks_carry_all_families_and_what_is_proven_is_proven(tmp_path: Path, small_tasks: list[Task]) -> None:
    every = {family for task in small_tasks for family in families(task)}
    proofs = Proofs(tmp_path, "v1")
    chosen = proofs.carriers(small_tasks)
    assert {family for task in small_tasks if task.id in chosen for family in families(task)} == every
    assert len(chosen) == len({task.faults or task.track for task in small_tasks})
    proofs.add(families(small_tasks[0]))
    again = Proofs(tmp_path, "v1").carriers(small_tasks)
    assert again == chosen - {small_tasks[0].id}, "once per version, on any day"
    assert Proofs(tmp_path, "v2").carriers(small_tasks) == Proofs(None, "v1").carriers(small_tasks) == chosen


def test_a_family_in_which_a_cheat_pays_loses_its_later_tasks(tmp_path: Path, small_tasks: list[Task]) -> None:
    trials = Trials(tmp_path, "v", small_tasks[:1])
    order = trials.order(LabSpec(domain="d", store="s"), small_tasks[0])
    assert order.cheats and order.sample == 0.02
    assert trials.judged(order, Produced(paying="it pays")).paying == "it pays"
    later = trials.judged(order, Produced())
    assert later.admitted == () and Proofs(tmp_path, "v").carriers(small_tasks[:1]) == {small_tasks[0].id}
    assert Trials(None, "v", small_tasks).order(LabSpec(domain="d", store="s"), small_tasks[0]).cheats is False


def test_the_sample_follows_from_the_states_alone(cuts: list[Cut]) -> None:
    states = [one.state.model_copy(update={"id": f"x{n}:S1"}) for n, one in enumerate(cuts * 60)]
    share = sum(sampled(state, 0.02) for state in states) / len(states)
    assert 0.005 < share < 0.04 and not any(sampled(state, 0.0) for state in states)
    assert [sampled(s, 0.02) for s in states] == [sampled(s, 0.02) for s in states]
