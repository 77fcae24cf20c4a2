"""A bank that grows: the same generations whoever makes them, and readers of each."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bat_core.bank.builder import Builder
from bat_core.bank.store import generations, read, read_prompts, report_of
from bat_core.config.schema import Config
from bat_core.errors import SynthesisError
from bat_core.evolve.directory import RunDirectory
from bat_core.evolve.generations import synthesized, tasks_of
from bat_core.evolve.preflight import open_preflight
from bat_core.evolve.producer import Ended, Producer
from bat_core.evolve.settings import lab_spec
from bat_core.executors import LocalExecutor
from bat_core.leakage.client import Preflight
from bat_core.model.base import digest_of
from bat_core.model.run import BankReport
from bat_core.model.task import Task
from bat_core.registry import load_domain
from bat_core.rollout.lab import close_labs

DOMAIN = load_domain("medimaging")


@pytest.fixture(scope="module")
def preflight(small_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preflight]:
    with RunDirectory(tmp_path_factory.mktemp("run")) as run, open_preflight(small_config, run) as preflight:
        yield preflight
    close_labs()


def builder(config: Config, run: RunDirectory, preflight: Preflight, generation: int) -> Builder:
    return Builder(run.bank, lab_spec(config, run), LocalExecutor(0), preflight, generation=generation)


@pytest.fixture
def grown(small_config: Config, preflight: Preflight, small_tasks: list[Task], tmp_path: Path) -> Path:
    """A run whose bank has two generations of one and two tasks."""
    with RunDirectory(tmp_path / "grown") as run:
        contract = DOMAIN.contract()
        builder(small_config, run, preflight, 1).build(contract, small_tasks[:1])
        builder(small_config, run, preflight, 2).build(contract, small_tasks[:3])
    return tmp_path / "grown"


def test_what_is_added_is_a_generation_of_its_own(grown: Path, small_tasks: list[Task]) -> None:
    bank = grown / "bank"
    first, whole = read(bank, 1), read(bank)
    assert generations(bank) == [1, 2] and (first.report.generation, whole.report.generation) == (1, 2)
    assert [s.task.id for s in first.states] == [small_tasks[0].id] * 6
    assert list(whole.states[:6]) == list(first.states)
    assert [s.task.id for s in whole.states[6:]] == [t.id for t in small_tasks[1:3] for _ in range(6)]
    part = json.loads((bank / "generations/0002/manifest.json").read_text())
    assert part["after"] == first.report.digest
    assert whole.report.digest == digest_of([first.report.digest, part["report"]["digest"]])
    assert (whole.report.tasks, whole.report.asked, whole.report.states) == (3, 4, 18)
    assert report_of(bank) == whole.report
    assert not (bank / "generations/0002/snapshots").exists() and not (bank / "generations/0002/parts").exists()


def test_a_task_that_was_there_before_is_a_copy(grown: Path, small_tasks: list[Task]) -> None:
    bank = grown / "bank"
    assert report_of(bank).duplicates == 1 and report_of(bank).rejections == {"near-copy": 1}
    assert [one.task for one in read_prompts(bank)] == [task.id for task in small_tasks[:3]]


def test_a_generation_after_another_bank_is_refused(
    grown: Path, small_config: Config, preflight: Preflight, small_tasks: list[Task], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    with RunDirectory(other) as run:
        builder(small_config, run, preflight, 1).build(DOMAIN.contract(), small_tasks[3:4])
        shutil.copytree(grown / "bank" / "generations", run.bank / "generations")
        with pytest.raises(SynthesisError, match="was added to another bank"):
            read(run.bank)
        builder(small_config, run, preflight, 1).build(DOMAIN.contract(), small_tasks[4:5])
        assert generations(run.bank) == [1], "what was added to another bank goes with it"
    with pytest.raises(SynthesisError, match="has no generation 7"):
        read(grown / "bank", 7)


def test_half_a_generation_is_none_and_goes_on(
    grown: Path, small_config: Config, preflight: Preflight, small_tasks: list[Task]
) -> None:
    def stop(done: int, total: int) -> None:
        raise Ended

    with RunDirectory(grown) as run:
        third = builder(small_config, run, preflight, 3)
        third.progress = stop
        with pytest.raises(Ended):
            third.build(DOMAIN.contract(), small_tasks[3:5])
        assert generations(run.bank) == [1, 2] and len(list((run.bank / "generations/0003/parts").iterdir())) == 1
        report = builder(small_config, run, preflight, 3).build(DOMAIN.contract(), small_tasks[3:5])
    assert (report.generation, report.states) == (3, 30)
    assert read(grown / "bank", 3).report == report


def test_generations_are_cut_by_count(small_config: Config) -> None:
    bank = small_config.bank.model_copy(update={"tasks": 4, "grow": 3})
    config = small_config.model_copy(update={"bank": bank})
    cut = [task.id for n in (1, 2, 3) for task in tasks_of(config, DOMAIN, n)]
    assert cut == [task.id for task in synthesized(config, DOMAIN, 10)] and len(set(cut)) == 10


def report(number: int) -> BankReport:
    return BankReport(digest=f"d{number}", generation=number, tasks=1, states=1, slices=1, rejected=0, cells={})


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_producer_is_a_bounded_number_ahead_and_hands_out_in_order() -> None:
    made: list[int] = []

    def make(number: int, progress: Callable[[int, int], None]) -> BankReport:
        made.append(number)
        return report(number)

    producer = Producer(make, 2, 9, ahead=2)
    producer.start()
    until(lambda: made == [2, 3])
    time.sleep(0.1)
    assert made == [2, 3], "back-pressure: no more than was asked for and two"
    assert producer.take(2).digest == "d2"
    until(lambda: made == [2, 3, 4])
    assert [producer.take(n).digest for n in (3, 4)] == ["d3", "d4"]
    producer.close()
    producer.close()
    assert set(made) <= {2, 3, 4, 5, 6}


def test_a_producer_ends_between_two_tasks() -> None:
    begun, go = threading.Event(), threading.Event()
    steps: list[int] = []

    def make(number: int, progress: Callable[[int, int], None]) -> BankReport:
        for step in range(100):
            begun.set()
            go.wait(20)
            steps.append(step)
            progress(step, 100)
        return report(number)

    producer = Producer(make, 2, 3)
    producer.start()
    begun.wait(20)
    closing = threading.Thread(target=producer.close)
    closing.start()
    until(lambda: producer._ending)
    go.set()
    closing.join(20)
    assert not closing.is_alive() and steps == [0]


def test_what_goes_wrong_aside_is_raised_where_it_is_needed() -> None:
    def make(number: int, progress: Callable[[int, int], None]) -> BankReport:
        raise SynthesisError(f"no teacher for {number}")

    producer = Producer(make, 2, 3)
    producer.start()
    with pytest.raises(SynthesisError, match="no teacher for 2"):
        producer.take(2)
    producer.close()
