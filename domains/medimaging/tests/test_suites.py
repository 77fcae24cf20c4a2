"""Held-out and blind tasks: balanced, apart from the bank, and of another kind."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bat_medimaging import suites
from bat_medimaging.recipe import recipe_of
from bat_medimaging.toolbelt.phx import cls, nifti
from bat_medimaging.workspace import workspace_of


def test_suites_are_balanced_and_stable() -> None:
    for make in (suites.heldout_tasks, suites.blind_tasks):
        tasks = make(30)
        assert make(12) == tasks[:12]
        assert Counter(task.track for task in tasks) == {"segmentation": 15, "classification": 15}
        assert set(Counter((task.track, task.stratum) for task in tasks).values()) == {5}
        assert len({task.id for task in tasks}) == 30
    assert suites.heldout_tasks(6, key="secret") != suites.heldout_tasks(6)


def test_seeds_of_bank_and_suites_never_meet(helpers: Any) -> None:
    spaces = [helpers.every_kind(3), suites.heldout_tasks(30), suites.blind_tasks(30)]
    assert [{task.seed >> 48 for task in tasks} for tasks in spaces] == [{0}, {1}, {2}]


def test_blind_tasks_differ_in_fault_wording_and_geometry(helpers: Any) -> None:
    def features(tasks: Any) -> tuple[set[str], set[int], set[Any]]:
        faults = {fault for task in tasks for fault in task.faults}
        wordings = {recipe_of(task).wording for task in tasks}
        return faults, wordings, {shape for task in tasks for shape in shapes(task)}

    def shapes(task: Any) -> Any:
        for path, data in workspace_of(task).items():
            if path.endswith("ct.nii.gz") and len(data) > 4000:
                try:
                    volume = nifti.read(data)
                except nifti.Unreadable:
                    continue
                rows = abs(volume.affine[:3, :3]).argmax(0)
                yield "permuted" if tuple(rows) != (0, 1, 2) else "straight", bool(volume.zooms.max() > 4)
            elif path.endswith("image.png"):
                try:
                    yield cls.decode(data).shape
                except nifti.Unreadable:
                    continue

    bank, held = features(helpers.every_kind(2)), features(suites.heldout_tasks(30))
    blind = features(suites.blind_tasks(30))
    for known in (bank, held):
        assert "F1" in blind[0] - known[0]
        assert blind[1].isdisjoint(known[1])
        assert blind[2].isdisjoint(known[2])


def test_the_expert_solves_both_suites(helpers: Any, solve: Any) -> None:
    for task in [*suites.heldout_tasks(12), *suites.blind_tasks(12)]:
        run = solve(task)
        assert all(verdict.passed for verdict in helpers.judge(run.evidence).values()), (task.faults, run.lines)


def test_heldout_items_stand_in_their_own_task_only(helpers: Any) -> None:
    tasks = suites.heldout_tasks(12)
    items = suites.heldout_items(tasks)
    assert {item.kind for item in items} == {"identifier", "text", "answer", "secret"}
    assert len({item.text for item in items}) == len(items) == len({item.item_id for item in items})
    bank = b"".join(b"".join(helpers.CONTRACT.workspace(task).values()) for task in helpers.every_kind())
    for item in items:
        assert item.text.encode() not in bank
        if item.kind in ("identifier", "text"):
            task = next(task for task in tasks if task.id == item.task)
            assert item.text in workspace_of(task)["data/README.md"].decode()
