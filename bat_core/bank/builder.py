"""Building a generation of the Stage Bank: tasks, preflight, solving, admission, tables."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bat_core.bank.balance import cells_of, missing, where
from bat_core.bank.counts import DUPLICATE, cell_of
from bat_core.bank.duplicates import Pool, prompt_of, prompt_text
from bat_core.bank.produce import PRODUCE, Admitted, Produced
from bat_core.bank.store import Content, complete, discard_after, part_of, read, read_prompts, write_part
from bat_core.bank.sweep import hand_over, sweep
from bat_core.bank.tables import OVERRIDDEN, Prompt, Rejection
from bat_core.bank.trials import Trials
from bat_core.config.schema import TeacherConfig
from bat_core.errors import SynthesisError
from bat_core.hooks.contract import StageContract
from bat_core.hooks.domain import Domain
from bat_core.hooks.executor import Executor
from bat_core.leakage.client import Preflight
from bat_core.leakage.overrides import Override
from bat_core.leakage.overrides import admitted as admits
from bat_core.leakage.receipts import LeakageReceipt
from bat_core.model.base import JsonObject, digest_of
from bat_core.model.leakage import Checked
from bat_core.model.run import BankReport
from bat_core.model.state import StageState
from bat_core.model.task import Task
from bat_core.model.training import Slice
from bat_core.registry import load_domain, package_digest
from bat_core.rollout.lab import LabSpec
from bat_core.sandboxes.snapshots import SnapshotStore

TEXT_LIMIT = 1 << 20
BATCH = 64
SOLVING = {"endpoint", "model", "temperature", "answer_tokens", "turns"}
"""What of a teacher decides about a solution."""


@dataclass
class Builder:
    """Builds a generation of a bank; tasks that were solved before an interruption are not solved again.

    Attributes:
        folder: The bank's folder.
        lab: How tasks are solved; its store is the bank's.
        executor: Where.
        preflight: The leakage checker; nothing enters unchecked.
        progress: Called with (done, total) tasks; may raise to end the work, which goes on the next time.
        generation: Which one; later ones are made from more tasks and added.
        similar: Similarity of prompts from which a task is a near-copy.
        proofs: Folder of proofs that no cheat pays; None tries none.
        teacher: Who solves the tasks; None is the domain's expert.
        overrides: Samples that are admitted although a rule fired, by digest.
        found: Whether the generation was there already.
    """

    folder: Path
    lab: LabSpec
    executor: Executor
    preflight: Preflight
    progress: Callable[[int, int], None] = lambda done, total: None
    generation: int = 1
    similar: float = 0.8
    proofs: Path | None = None
    teacher: TeacherConfig | None = None
    rejected: list[Rejection] = field(default_factory=list)
    overrides: Mapping[str, Override] = field(default_factory=dict)
    found: bool = False

    def __post_init__(self) -> None:
        self._domain: Domain = load_domain(self.lab.domain)
        self._part = Path(part_of(self.folder, self.generation))
        self._why: dict[str, str] = {}
        self._prompts: list[Prompt] = []
        self._store = self.lab.store
        if self.generation > 1:  # rollouts use the bank's own store meanwhile, which nobody may sweep then
            self.lab = self.lab.model_copy(update={"store": str(self._part.resolve() / "snapshots")})

    def build(self, contract: StageContract, tasks: Sequence[Task]) -> BankReport:
        """Check, solve and admit `tasks`, then write the generation; one that is complete already stays as it is.

        Raises:
            SynthesisError: If nothing at all could be admitted.
        """
        before = read(self.folder, self.generation - 1).report if self.generation > 1 else None
        request = self._request(tasks, before)
        if (standing := complete(self.folder, request, self.generation)) is not None:
            self.found = True
            self._forget_parts()
            return standing
        clean = self._clean_tasks(contract, tasks)
        states: list[StageState] = []
        slices: list[Slice] = []
        for n, produced in enumerate(self._solve(clean), 1):
            self._take(produced, states, slices)
            self.progress(n, len(clean))
        sweep(SnapshotStore(Path(self.lab.store)), states)  # before the manifest: a complete bank is a swept one
        if clean and not states:
            self._forget_parts()
            first = self.rejected[0].reason if self.rejected else "no states"
            remedy = "mend the tasks or the domain's expert and run again"
            raise SynthesisError(f"no state of {len(clean)} tasks was admitted: {first}", remedy=remedy)
        if self.generation == 1:
            discard_after(self.folder, 1)  # what was added to another bank
        else:
            hand_over(Path(self.lab.store), Path(self._store))
        _write_receipts(self._part / "receipts.jsonl", self.preflight.receipts)
        report = write_part(self.folder, self.generation, self._content(tasks, clean, states, slices), request, before)
        self._forget_parts()
        return report

    def _content(
        self, tasks: Sequence[Task], clean: Sequence[Task], states: list[StageState], slices: list[Slice]
    ) -> Content:
        filled = Counter(cell_of(state.focus, state.task.track, state.stratum.value) for state in states)
        whole = Counter(f"{one.task.track}/{where(self._domain, one.task)}" for one in states if one.is_e2e)
        return Content(
            states,
            slices,
            self.rejected,
            len(clean),
            self._prompts,
            missing(self._domain, filled, tasks, self._why),
            dict(sorted(whole.items())),
            len(tasks),
        )

    def _forget_parts(self) -> None:
        """Remove what was solved but not checked yet: a rejected sample stays nowhere."""
        shutil.rmtree(self._part / "parts", ignore_errors=True)

    def _request(self, tasks: Sequence[Task], before: BankReport | None) -> str:
        """Return the digest of all that a bank depends on: tasks, code, limits, and what it was checked against."""
        admitted = [one.model_dump() for _, one in sorted(self.overrides.items())]
        how = [self._how(), self.preflight.digest, admitted, self.similar, before.digest if before else ""]
        return digest_of([*how, [digest_of(task) for task in tasks]])

    def _how(self) -> JsonObject:
        """Return what the solution of a task depends on besides the task; where it is kept does not count."""
        packages = ("bat_core", type(self._domain).__module__)
        code = [package_digest(package) for package in packages]
        teacher = self.teacher.model_dump(mode="json", include=SOLVING) if self.teacher else None
        return {"code": code, "lab": self.lab.model_dump(mode="json", exclude={"store"}), "teacher": teacher}

    def _clean_tasks(self, contract: StageContract, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks that may be solved: checked for leaks as the sandbox would show them, near-copies left out.

        Copies are looked for among clean ones, in order, here and in all earlier generations.
        """
        known = read_prompts(self.folder, self.generation - 1) if self.generation > 1 else []
        pool = Pool(self.similar, known)
        shared = [path.read_text() for path in self._domain.skills().values()]
        visible = (_visible(contract, task) for task in tasks)
        clean = []
        for batch in _batches(zip(tasks, visible, strict=True)):
            answers = self.preflight.check((str(n), value) for n, (_, value) in enumerate(batch))
            for (task, value), answer in zip(batch, answers, strict=True):
                admitted = self._admits("task", task.model_dump(mode="json"), answer, cells_of(self._domain, task))
                if admitted and self._is_fresh(pool, task, prompt_text(contract, task, value, shared)):
                    clean.append(task)
        return clean

    def _is_fresh(self, pool: Pool, task: Task, text: str) -> bool:
        prompt = prompt_of(task.id, text)
        (copy,) = pool.fresh([prompt])
        if not copy:
            self._prompts.append(prompt)
            return True
        content = digest_of(task.model_dump(mode="json"))
        self.rejected.append(Rejection(content, "duplicate", DUPLICATE, reason=copy))
        for cell in cells_of(self._domain, task):
            self._why.setdefault(cell, f"a task was {copy}")
        return False

    def _solve(self, tasks: Sequence[Task]) -> Iterator[Produced]:
        """Yield in order of tasks; each result is kept on disk until the generation is complete."""
        parts = self._part / "parts"
        parts.mkdir(parents=True, exist_ok=True)
        how = self._how()
        lasting = self.lab.model_dump(mode="json", exclude={"store", "key"})
        trial = Trials(self.proofs, digest_of([how["code"], lasting]), tasks)
        orders = [trial.order(self.lab, task, self.teacher) for task in tasks]
        paths = [
            parts / (digest_of([how, one.cheats, one.sample, digest_of(one.task)])[7:27] + ".json") for one in orders
        ]
        missing = [order for order, path in zip(orders, paths, strict=True) if not path.exists()]
        fresh = self.executor.map(PRODUCE, missing)
        for order, path in zip(orders, paths, strict=True):
            if not path.exists():
                _keep(path, next(fresh))
            yield trial.judged(order, _kept(path))

    def _take(self, produced: Produced, states: list[StageState], slices: list[Slice]) -> None:
        """Put what passes the preflight into the pools: a state with all of its slices, or nothing of it."""
        refused = self.preflight.check((str(n), one.reason) for n, one in enumerate(produced.refused))
        for one, answer in zip(produced.refused, refused, strict=True):
            reason = one.reason if answer.verdict == "pass" else "the reason is not shown: it quotes what is held out"
            self._why.setdefault(one.cell, reason)
            self.rejected.append(
                Rejection(digest_of(one.reason), "admission", "admission", reason=reason, cell=one.cell)
            )
        values = [_whole(admitted) for admitted in produced.admitted]
        answers = self.preflight.check((str(n), value) for n, value in enumerate(values))
        for admitted, value, answer in zip(produced.admitted, values, answers, strict=True):
            state = admitted.state
            cell = cell_of(state.focus, state.task.track, state.stratum.value)
            if self._admits("state", value, answer, [cell]):
                states.append(state)
                slices += admitted.slices

    def _admits(self, phase: str, value: Any, answer: Checked, cells: Sequence[str]) -> bool:
        """Whether a sample may enter; if not, or only because someone said so, that is kept."""
        override = self.overrides.get(digest_of(value)) if answer.verdict != "pass" else None
        if not admits(answer, override):
            self._reject(phase, value, answer, cells)
            return False
        if override is not None:
            self.rejected.append(Rejection(override.sample, OVERRIDDEN, answer.findings[0].rule, reason=str(override)))
        return True

    def _reject(self, phase: str, value: Any, answer: Checked, cells: Sequence[str]) -> None:
        cell = cells[0] if len(cells) == 1 else ""
        for found in answer.findings:
            offsets = (found.start, found.end)
            row = Rejection(digest_of(value), phase, found.rule, found.kind, found.path, *offsets, found.reason, cell)
            self.rejected.append(row)
            for one in cells:
                self._why.setdefault(one, f"the preflight's rule {found.rule} rejected it")


def _batches(tasks: Iterable[tuple[Task, JsonObject]]) -> Iterator[list[tuple[Task, JsonObject]]]:
    """Yield tasks with what they show, few at a time: workspaces are large."""
    waiting: list[tuple[Task, JsonObject]] = []
    for one in tasks:
        waiting.append(one)
        if len(waiting) == BATCH:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _visible(contract: StageContract, task: Task) -> dict[str, Any]:
    """Return what of a task a policy could ever see, as one JSON value."""
    files = {}
    for path, data in contract.workspace(task).items():
        if len(data) <= TEXT_LIMIT and b"\0" not in data:
            files[path] = data.decode(errors="replace")
    return {**task.model_dump(mode="json", exclude={"private"}), "files": files}


def _whole(admitted: Admitted) -> JsonObject:
    """Return everything that the policy could see or learn from a state: its last slice holds all slices before it."""
    value = admitted.state.model_dump(mode="json")
    del value["task"]["private"]
    return {"state": value, "slice": admitted.slices[-1].model_dump(mode="json") if admitted.slices else None}


def _write_receipts(path: Path, receipts: Sequence[LeakageReceipt]) -> None:
    """Keep the checker's signed word for what was checked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text("".join(one.model_dump_json() + "\n" for one in receipts))
    partial.replace(path)


def _keep(path: Path, produced: Produced) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(produced.model_dump_json())
    partial.replace(path)


def _kept(path: Path) -> Produced:
    try:
        return Produced.model_validate_json(path.read_text())
    except ValueError as error:
        raise SynthesisError(f"{path} is damaged", remedy=f"remove {path.parent} and run again") from error
