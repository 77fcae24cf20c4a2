"""Building a bank of real tasks: what is kept, what is refused, what it is the same as."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bat_core.bank.builder import Builder
from bat_core.bank.given import read_tasks
from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.produce import PRODUCE, Admitted, Order, Refused
from bat_core.bank.store import Bank, read, read_rejections, write
from bat_core.config.schema import Config
from bat_core.errors import BatError, SynthesisError
from bat_core.evolve.directory import RunDirectory
from bat_core.evolve.preflight import open_preflight
from bat_core.evolve.settings import lab_spec
from bat_core.executors import LocalExecutor
from bat_core.hooks.executor import Executor
from bat_core.leakage.client import Preflight
from bat_core.leakage.overrides import Override
from bat_core.leakage.receipts import LeakageReceipt
from bat_core.model.message import Message
from bat_core.model.run import BankReport
from bat_core.model.task import Task
from bat_core.registry import load_domain
from bat_core.rollout.lab import close_labs
from bat_core.sandboxes.snapshots import SnapshotStore

BAT = [sys.executable, "-c", "from bat_core.cli.main import main; main()"]
FEW = ["bank.workers=0", "sandbox.provider=bubblewrap", "evaluate.tasks=2", "evaluate.blind_tasks=2"]
FEW += ["bank.cheats=false"]
DOMAIN = load_domain("medimaging")
Build = Callable[[Path, list[Task], Executor], BankReport]


class Counting(LocalExecutor):
    """Solves in this process, counts, and dies after some."""

    def __init__(self, until: int = 99) -> None:
        super().__init__(0)
        self.until = until
        self.solved: list[str] = []

    def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
        assert name == PRODUCE
        for order in items:
            assert isinstance(order, Order)
            if len(self.solved) == self.until:
                raise BatError("the power went off")
            self.solved.append(order.task.id)
            yield from super().map(name, [order])


@pytest.fixture(scope="module")
def preflight(small_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preflight]:
    with RunDirectory(tmp_path_factory.mktemp("run")) as run, open_preflight(small_config, run) as preflight:
        yield preflight
    close_labs()


@pytest.fixture
def build(small_config: Config, preflight: Preflight) -> Iterator[Build]:
    def build(path: Path, tasks: list[Task], executor: Executor) -> BankReport:
        with RunDirectory(path) as run:
            lab = lab_spec(small_config, run)
            return Builder(run.bank, lab, executor, preflight).build(DOMAIN.contract(), tasks)

    yield build
    close_labs()


def bat(*words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run([*BAT, *words], capture_output=True, text=True, env=environment, timeout=120)


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_every_task_is_admitted_with_all_its_states(bank: Bank, small_tasks: list[Task], small_run: Path) -> None:
    assert bank.report.tasks == len(small_tasks) and bank.report.rejected == 0
    assert len(bank.states) == 6 * len(small_tasks)
    assert {one.trajectory for one in bank.slices} == {task.id for task in small_tasks}
    assert not (small_run / "bank" / "parts").exists()


def test_what_was_solved_before_the_power_went_off_is_not_solved_again(
    build: Build, bank: Bank, small_tasks: list[Task], tmp_path: Path
) -> None:
    first, second = Counting(until=2), Counting()
    with pytest.raises(BatError, match="the power went off"):
        build(tmp_path, small_tasks, first)
    parts = tmp_path / "bank" / "parts"
    kept = {path: path.read_bytes() for path in parts.iterdir()}
    assert len(kept) == 2 and not (tmp_path / "bank" / "manifest.json").exists()
    report = build(tmp_path, small_tasks, second)
    assert first.solved + second.solved == [task.id for task in small_tasks]
    assert report == bank.report, "the same bank as in one go, although the run has another key"
    assert not parts.exists()


def test_a_complete_bank_of_the_same_request_is_left_as_it_is(
    build: Build, small_tasks: list[Task], tmp_path: Path
) -> None:
    def traces() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in files_of(tmp_path / "bank")}

    report = build(tmp_path, small_tasks[:2], Counting())
    before, again = traces(), Counting(until=0)
    assert build(tmp_path, small_tasks[:2], again) == report
    assert again.solved == [] and traces() == before
    other = Counting()
    assert build(tmp_path, small_tasks[1:3], other).digest != report.digest
    assert len(other.solved) == 2, "another request is another bank"
    states = tmp_path / "bank" / "states.parquet"
    states.write_bytes(states.read_bytes()[:-9])
    third = Counting()
    build(tmp_path, small_tasks[1:3], third)
    assert len(third.solved) == 2, "what is damaged is not complete"


def test_parts_of_other_limits_are_not_taken_for_these(
    small_config: Config, preflight: Preflight, build: Build, small_tasks: list[Task], tmp_path: Path
) -> None:
    with pytest.raises(BatError, match="the power went off"):
        build(tmp_path, small_tasks[:2], Counting(until=1))
    other, counting = small_config.rollout.model_copy(update={"observation_chars": 900}), Counting()
    with RunDirectory(tmp_path) as run:
        lab = lab_spec(small_config, run).model_copy(update={"rollout": other})
        Builder(run.bank, lab, counting, preflight).build(DOMAIN.contract(), small_tasks[:2])
    assert len(counting.solved) == 2


def test_building_again_says_in_one_line_that_there_is_nothing_to_do(small_tasks: list[Task], tmp_path: Path) -> None:
    file, run = tmp_path / "tasks.jsonl", tmp_path / "run"
    file.write_text(small_tasks[0].model_dump_json() + "\n")
    first, second = (bat("bank", "build", *FEW, "--run", str(run), "--tasks", str(file), "--json") for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stderr.startswith("bank: 6 states and ") and "nothing to do" not in first.stderr
    assert second.stderr.startswith(f"bank: nothing to do, {run}/bank is complete: 6 states and ")
    assert second.stderr.count("\n") == 1 and second.stdout == first.stdout


def test_a_part_that_the_crash_spoilt_is_named(build: Build, small_tasks: list[Task], tmp_path: Path) -> None:
    with pytest.raises(BatError, match="the power went off"):
        build(tmp_path, small_tasks[:2], Counting(until=1))
    (part,) = (tmp_path / "bank" / "parts").iterdir()
    part.write_text(part.read_text()[:100])
    with pytest.raises(SynthesisError) as caught:
        build(tmp_path, small_tasks[:2], Counting())
    assert str(part) in str(caught.value) and "\n" not in str(caught.value)


def test_a_seed_is_a_bank(build: Build, tmp_path: Path) -> None:
    """Same seed, same digest, in any folder; another seed, another digest."""
    digests = []
    for place, seed in enumerate((3, 3, 4)):
        tasks = make_tasks(DOMAIN.synthesizer(), requests(DOMAIN.contract(), 2, seed))
        digests.append(build(tmp_path / str(place), tasks, LocalExecutor(0)).digest)
    assert digests[0] == digests[1] != digests[2]


def test_a_bank_of_nothing_but_failures_is_an_error(
    small_config: Config, preflight: Preflight, small_tasks: list[Task], tmp_path: Path
) -> None:
    class Refusing(LocalExecutor):
        def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
            from bat_core.bank.produce import Produced

            yield from (Produced(refused=(Refused(reason="the expert was ill"),)) for _ in items)

    with RunDirectory(tmp_path) as run, pytest.raises(SynthesisError) as caught:
        builder = Builder(run.bank, lab_spec(small_config, run), Refusing(0), preflight)
        builder.build(DOMAIN.contract(), small_tasks)
    assert "no state of 6 tasks was admitted: the expert was ill" in str(caught.value)


def test_a_held_out_identifier_costs_its_row_and_stays_nowhere(tmp_path: Path, small_tasks: list[Task]) -> None:
    from bat_medimaging.suites import blind_tasks, heldout_tasks

    secrets = [heldout_tasks(2)[1].id, blind_tasks(2)[0].id]
    dirty = [
        task.model_copy(update={"public": {**task.public, "notes": ["see", f"as in {secret} before"]}})
        for task, secret in zip(small_tasks[1:3], secrets, strict=True)
    ]
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(task.model_dump_json() + "\n" for task in [small_tasks[0], *dirty]))
    done = bat("bank", "build", *FEW, "--run", str(tmp_path / "run"), "--tasks", str(file), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["tasks"], report["states"], report["rejected"]) == (1, 6, 2)
    assert report["rejections"] == {"identifier": 2}
    folder = tmp_path / "run" / "bank"
    rows = read_rejections(folder)
    for row, secret in zip(rows, secrets, strict=True):
        assert (row["phase"], row["rule"], row["kind"]) == ("task", "identifier", "identifier")
        assert row["path"] == "$.public.notes[1]", row["path"]
        assert f"as in {secret} before"[row["start"] : row["end"]] == secret
        assert row["content"].startswith("sha256:") and len(row["content"]) == 71
        assert [path for path in files_of(tmp_path / "run") if secret.encode() in path.read_bytes()] == []
    shown = bat("bank", "show", str(tmp_path / "run"), "--json")
    assert json.loads(shown.stdout)["rejections"] == rows


class Careless(LocalExecutor):
    """An expert that lets slip something held out: in the states of `stages`, and in what it says of refusals."""

    def __init__(self, secret: str, stages: set[str]) -> None:
        super().__init__(0)
        self.secret, self.stages = secret, stages

    def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
        for order in items:
            (made,) = super().map(name, [order])
            admitted = [self._spoilt(order, one) if one.state.focus in self.stages else one for one in made.admitted]
            why = f"S1 of a task: the expert's own run fails S1.a (found {self.secret})"
            yield made.model_copy(update={"admitted": tuple(admitted), "refused": (Refused(reason=why),)})

    def _spoilt(self, order: Order, one: Admitted) -> Admitted:
        said = (*one.state.messages, Message(role="assistant", content=f"as in {self.secret}"))
        update: dict[str, Any] = {"messages": said}
        if one.state.focus != "S1":  # S1 shares its workspace with the E2E state
            store = SnapshotStore(Path(order.lab.store))
            update["snapshot"] = store.put_files({"notes.txt": self.secret.encode()})
        return one.model_copy(update={"state": one.state.model_copy(update=update)})


def test_of_a_state_that_is_rejected_after_solving_only_a_digest_stays(
    build: Build, small_tasks: list[Task], tmp_path: Path
) -> None:
    from bat_medimaging.suites import heldout_tasks

    secret = heldout_tasks(2)[1].id
    report = build(tmp_path, small_tasks[:2], Careless(secret, {"S1", "S3"}))
    assert (report.states, report.rejections) == (8, {"identifier": 4, "admission": 2})
    rows = read_rejections(tmp_path / "bank")
    assert {row["phase"] for row in rows} == {"state", "admission"}
    assert [row["reason"] for row in rows if row["phase"] == "admission"] == [
        "the reason is not shown: it quotes what is held out"
    ] * 2
    bank = read(tmp_path / "bank")
    assert {state.focus for state in bank.states} == {"E2E", "S2", "S4", "S5"}
    blobs = {path.stem for path in (tmp_path / "bank" / "snapshots").rglob("*.tar")}
    assert blobs == {state.snapshot.root.removeprefix("sha256:") for state in bank.states}
    assert [path for path in files_of(tmp_path) if secret.encode() in path.read_bytes()] == []


def test_nothing_of_states_that_were_all_rejected_stays(build: Build, small_tasks: list[Task], tmp_path: Path) -> None:
    from bat_medimaging.suites import heldout_tasks

    secret = heldout_tasks(2)[1].id
    everything = {"E2E", "S1", "S2", "S3", "S4", "S5"}
    with pytest.raises(SynthesisError, match="no state of 1 tasks was admitted: ") as caught:
        build(tmp_path, small_tasks[:1], Careless(secret, everything))
    assert secret not in str(caught.value)
    assert [path for path in files_of(tmp_path) if secret.encode() in path.read_bytes()] == []
    assert files_of(tmp_path / "bank") == []


def test_a_bank_of_one_rejected_row_is_empty_and_no_error(tmp_path: Path, small_tasks: list[Task]) -> None:
    from bat_medimaging.suites import heldout_tasks

    secret = heldout_tasks(2)[0].id
    file = tmp_path / "tasks.jsonl"
    file.write_text(small_tasks[0].model_copy(update={"public": {"kind": secret}}).model_dump_json() + "\n")
    done = bat("bank", "build", *FEW, "--run", str(tmp_path / "run"), "--tasks", str(file))
    assert done.returncode == 0, done.stderr
    (row,) = read_rejections(tmp_path / "run" / "bank")
    assert (row["rule"], row["path"], row["start"], row["end"]) == ("identifier", "$.public.kind", 0, len(secret))
    assert read(tmp_path / "run" / "bank").states == []
    for path in files_of(tmp_path / "run"):
        assert secret.encode() not in path.read_bytes(), path
    assert secret not in done.stdout + done.stderr


def test_tasks_are_read_from_lines_and_a_wrong_one_is_named(tmp_path: Path, small_tasks: list[Task]) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join(task.model_dump_json() for task in small_tasks) + "\n\n")
    assert read_tasks(file) == small_tasks
    file.write_text(small_tasks[0].model_dump_json() + "\n\n" + '{"id": 3}\n')
    with pytest.raises(SynthesisError) as caught:
        read_tasks(file)
    assert f"{file}:3 is not a task" in str(caught.value) and "\n" not in str(caught.value)
    for spoil in (b"nonsense", b"[1]", b"\xff\xfe"):
        file.write_bytes(spoil)
        with pytest.raises(SynthesisError) as caught:
            read_tasks(file)
        assert str(file) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(SynthesisError, match="can't read"):
        read_tasks(tmp_path / "nowhere")


def test_tasks_can_be_written_and_given_back(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    done = bat("bank", "build", *FEW, "bank.tasks=5", "--run", str(tmp_path / "run"), "--write-tasks", str(file))
    assert done.returncode == 0 and not (tmp_path / "run").exists()
    assert len(read_tasks(file)) == 5


def test_cheats_are_tried_once_a_version(
    small_config: Config, preflight: Preflight, small_tasks: list[Task], tmp_path: Path
) -> None:
    class Asked(Counting):
        def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
            orders = list(items)
            tried.append([order.cheats for order in orders])
            yield from super().map(name, orders)

    tried: list[list[bool]] = []
    reports = []
    for name in ("one", "two"):
        with RunDirectory(tmp_path / name) as run:
            lab = lab_spec(small_config, run)
            builder = Builder(run.bank, lab, Asked(), preflight, proofs=tmp_path / "proofs")
            reports.append(builder.build(DOMAIN.contract(), small_tasks[:1]))
    assert tried == [[True], [False]] and reports[0] == reports[1] and reports[0].states == 6


def test_a_paying_cheat_costs_its_family(
    small_config: Config, preflight: Preflight, small_tasks: list[Task], tmp_path: Path
) -> None:
    class Corrupt(LocalExecutor):
        def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
            for order in items:
                (made,) = super().map(name, [Order(order.lab, order.task)])
                if order.task.faults == small_tasks[1].faults:
                    assert order.cheats
                    why = Refused(reason="the cheat pays", cell="E2E/segmentation/recovery")
                    made = made.model_copy(update={"admitted": (), "refused": (why,), "paying": "the cheat pays"})
                yield made

    twin = small_tasks[1].model_copy(update={"id": "twin", "seed": 77})
    with RunDirectory(tmp_path / "run") as run:
        builder = Builder(run.bank, lab_spec(small_config, run), Corrupt(0), preflight, proofs=tmp_path / "proofs")
        builder.executor = _Later(Corrupt(0), twin)
        report = builder.build(DOMAIN.contract(), [small_tasks[0], small_tasks[1], twin])
    assert {state.task.id for state in read(tmp_path / "run" / "bank").states} == {small_tasks[0].id}
    assert report.rejections == {"admission": 7}
    assert report.missing["E2E/segmentation/recovery"] == "asked for, but nothing was admitted: the cheat pays"


class _Later(LocalExecutor):
    """Tries no cheat on a twin: another task carries its family."""

    def __init__(self, inner: Executor, twin: Task) -> None:
        super().__init__(0)
        self.inner, self.twin = inner, twin

    def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
        for order in items:
            maker = self.inner if order.task != self.twin else super()
            yield from maker.map(name, [order])


def test_an_override_admits_a_sample_and_stands_in_the_report(
    small_config: Config, small_tasks: list[Task], preflight: Preflight, tmp_path: Path
) -> None:
    from bat_medimaging.suites import heldout_tasks

    public = {**small_tasks[0].public, "note": f"as in {heldout_tasks(1)[0].id}"}
    task = small_tasks[0].model_copy(update={"public": public})
    contract = DOMAIN.contract()
    with RunDirectory(tmp_path / "without") as run:
        builder = Builder(run.bank, lab_spec(small_config, run), LocalExecutor(0), preflight)
        assert builder._clean_tasks(contract, [task]) == []
        (row,) = {one.content for one in builder.rejected}
    decided = Override(sample=row, reason="the id was published last year", by="owner")
    with RunDirectory(tmp_path / "with") as run:
        builder = Builder(run.bank, lab_spec(small_config, run), LocalExecutor(0), preflight)
        builder.overrides = {row: decided}
        assert builder._clean_tasks(contract, [task]) == [task]
        assert [(one.phase, one.reason) for one in builder.rejected] == [("override", str(decided))]
        report = write(run.bank, [], [], builder.rejected, 1, "request")
    assert (report.rejected, report.overrides) == (0, (str(decided),))


def test_receipts_of_the_checker_are_kept(small_run: Path) -> None:
    lines = (small_run / "bank/receipts.jsonl").read_text().splitlines()
    rows = [LeakageReceipt.model_validate_json(line) for line in lines]
    assert rows
    assert all(row.mac and row.index.startswith("sha256:") for row in rows)
    assert sum(sum(row.counts.values()) for row in rows) >= len(read(small_run / "bank").states)
