from __future__ import annotations

from collections import Counter

from bat_core.bank.plan import SHARE, make_tasks, requests
from bat_core.bank.self_instruct import SelfInstruct
from bat_core.model.task import Stratum
from bat_core.registry import load_domain

DOMAIN = load_domain("medimaging")


def test_cells_are_filled_in_proportion() -> None:
    wanted = requests(DOMAIN.contract(), 5 * 92, seed=1)
    cells = Counter((one.track, one.stratum, one.stage) for one in wanted)
    faulty = {n for (_, stratum, _), n in cells.items() if stratum is not Stratum.SUCCESS}
    assert len(cells) == 2 * (2 * 5 + 1) and len(faulty) == 1, "a whole number of cycles is exactly balanced"
    by_track = Counter(one.track for one in wanted)
    assert len(set(by_track.values())) == 1
    strata = Counter(one.stratum for one in wanted)
    assert strata[Stratum.RECOVERY] == strata[Stratum.FAILURE] > strata[Stratum.SUCCESS] > 0
    assert SHARE[Stratum.RECOVERY] == SHARE[Stratum.FAILURE]


def test_a_smaller_bank_is_the_beginning_of_a_larger_one() -> None:
    assert requests(DOMAIN.contract(), 7, 3) == requests(DOMAIN.contract(), 50, 3)[:7]


def test_every_request_has_its_own_seed_and_another_run_has_others() -> None:
    one, other = (requests(DOMAIN.contract(), 60, seed) for seed in (0, 1))
    assert len({r.seed for r in one}) == 60 and not {r.seed for r in one} & {r.seed for r in other}


def test_same_requests_same_tasks() -> None:
    wanted = requests(DOMAIN.contract(), 24, 0)
    tasks = make_tasks(SelfInstruct(DOMAIN), wanted)
    assert tasks == make_tasks(SelfInstruct(DOMAIN), wanted) and len({task.id for task in tasks}) == 24
    stages = {fault.id: fault.stage for fault in DOMAIN.faults()}
    for request, task in zip(wanted, tasks, strict=True):
        assert (task.track, task.stratum) == (request.track, request.stratum)
        assert (stages[task.faults[0]] if task.faults else None) == request.stage
