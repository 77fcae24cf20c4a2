from __future__ import annotations

from collections import Counter

from bat_core.bank import balance
from bat_core.bank.plan import enough, make_tasks, requests
from bat_core.bank.store import Bank
from bat_core.model.task import Stratum, Task
from bat_core.registry import load_domain

DOMAIN = load_domain("medimaging")


def test_the_plan_reaches_every_cell_and_every_kind_of_whole_task() -> None:
    tasks = make_tasks(DOMAIN.synthesizer(), requests(DOMAIN.contract(), enough(DOMAIN.contract()), 3))
    filled = Counter(cell for task in tasks for cell in balance.cells_of(DOMAIN, task))
    assert set(filled) == set(balance.cells(DOMAIN)) and len(filled) == 6 * 2 * 3
    assert balance.missing(DOMAIN, filled, tasks, {}) == {}
    kinds = Counter((task.track, balance.where(DOMAIN, task)) for task in tasks)
    wanted = (balance.NONE, balance.START, balance.MIDDLE, balance.LATE, balance.UNRECOVERABLE)
    assert {(track, kind) for track in DOMAIN.contract().tracks() for kind in wanted} == set(kinds)


def test_where_a_fault_lies_follows_from_the_catalogue() -> None:
    def whole(*faults: str) -> str:
        return balance.where(DOMAIN, Task(id="t", domain="d", track="segmentation", seed=0, faults=faults))

    assert [whole(), whole("P1", "P3"), whole("V1", "V2"), whole("F3")] == ["none", "start", "middle", "late"]
    assert whole("F5") == whole("F3", "F5") == "unrecoverable"


def test_an_empty_cell_has_its_reason() -> None:
    tasks = make_tasks(DOMAIN.synthesizer(), requests(DOMAIN.contract(), 4, 0))
    asked = {cell for task in tasks for cell in balance.cells_of(DOMAIN, task)}
    cell = sorted(asked)[0]
    found = balance.missing(DOMAIN, {}, tasks, {cell: "the preflight's rule text rejected it"})
    assert set(found) == set(balance.cells(DOMAIN))
    assert found[cell] == "asked for, but nothing was admitted: the preflight's rule text rejected it"
    assert {one for one, why in found.items() if balance.asked_for(why)} == asked
    never = found["S5/classification/failure"]
    assert never == f"none of 4 tasks was of it; the plan reaches all cells with {enough(DOMAIN.contract())} tasks"


def test_the_report_of_a_bank_tells_them(bank: Bank, small_tasks: list[Task]) -> None:
    filled = {f"{s.focus}/{s.task.track}/{s.stratum}" for s in bank.states}
    assert set(bank.report.missing) == set(balance.cells(DOMAIN)) - filled
    assert not any(balance.asked_for(why) for why in bank.report.missing.values())
    assert sum(bank.report.e2e.values()) == len(small_tasks) == bank.report.asked
    assert bank.report.distinct == 1.0 and bank.report.duplicates == 0
    failing = sum(task.stratum is Stratum.FAILURE for task in small_tasks)
    assert sum(n for cell, n in bank.report.cells.items() if cell.startswith("E2E") and "fail" in cell) == failing
