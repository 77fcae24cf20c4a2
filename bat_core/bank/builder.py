"""Building a generation of the Stage Bank: tasks, preflight, solving, admission, tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bat_core.bank.produce import Admitted, Order, Produced, produce
from bat_core.bank.store import OVERRIDDEN, Rejection, complete, write
from bat_core.bank.sweep import sweep
from bat_core.errors import SynthesisError
from bat_core.hooks.contract import StageContract
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
PRODUCE = f"{produce.__module__}:{produce.__name__}"


@dataclass
class Builder:
    """Builds a bank in a folder; tasks that were solved before an interruption are not solved again.

    Attributes:
        folder: The bank's folder.
        lab: How tasks are solved.
        executor: Where.
        preflight: The leakage checker; nothing enters unchecked.
        progress: Called with (done, total) tasks.
        overrides: Samples that are admitted although a rule fired, by digest.
        found: Whether the bank was there already.
    """

    folder: Path
    lab: LabSpec
    executor: Executor
    preflight: Preflight
    progress: Callable[[int, int], None] = lambda done, total: None
    rejected: list[Rejection] = field(default_factory=list)
    overrides: Mapping[str, Override] = field(default_factory=dict)
    found: bool = False

    def build(self, contract: StageContract, tasks: Sequence[Task]) -> BankReport:
        """Check, solve and admit `tasks`, then write the bank; one that is complete already stays as it is.

        Raises:
            SynthesisError: If nothing at all could be admitted.
        """
        request = self._request(tasks)
        if (standing := complete(self.folder, request)) is not None:
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
        _write_receipts(self.folder / "receipts.jsonl", self.preflight.receipts)
        report = write(self.folder, states, slices, self.rejected, len(clean), request)
        self._forget_parts()
        return report

    def _forget_parts(self) -> None:
        """Remove what was solved but not checked yet: a rejected sample stays nowhere."""
        shutil.rmtree(self.folder / "parts", ignore_errors=True)

    def _request(self, tasks: Sequence[Task]) -> str:
        """Return the digest of all that a bank depends on: tasks, code, limits, and what it was checked against."""
        admitted = [one.model_dump() for _, one in sorted(self.overrides.items())]
        return digest_of([self._how(), self.preflight.digest, admitted, [digest_of(task) for task in tasks]])

    def _how(self) -> JsonObject:
        """Return what the solution of a task depends on besides the task; where it is kept does not count."""
        packages = ("bat_core", type(load_domain(self.lab.domain)).__module__)
        code = [package_digest(package) for package in packages]
        return {"code": code, "lab": self.lab.model_dump(mode="json", exclude={"store"})}

    def _clean_tasks(self, contract: StageContract, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks that may be solved: everything that the sandbox would be given is checked first."""
        answers = self.preflight.check((str(n), _visible(contract, task)) for n, task in enumerate(tasks))
        clean = []
        for task, answer in zip(tasks, answers, strict=True):
            if self._admits("task", task.model_dump(mode="json"), answer):
                clean.append(task)
        return clean

    def _solve(self, tasks: Sequence[Task]) -> Iterator[Produced]:
        """Yield in order of tasks; each result is kept on disk until the bank is complete."""
        parts = self.folder / "parts"
        parts.mkdir(parents=True, exist_ok=True)
        how = self._how()
        paths = [parts / (digest_of([how, digest_of(task)])[7:27] + ".json") for task in tasks]
        missing = [(t, p) for t, p in zip(tasks, paths, strict=True) if not p.exists()]
        fresh = self.executor.map(PRODUCE, [Order(self.lab, task) for task, _ in missing])
        for path in paths:
            if not path.exists():
                _keep(path, next(fresh))
            yield _kept(path)

    def _take(self, produced: Produced, states: list[StageState], slices: list[Slice]) -> None:
        """Put what passes the preflight into the pools: a state with all of its slices, or nothing of it."""
        refused = self.preflight.check((str(n), why) for n, why in enumerate(produced.refused))
        for why, answer in zip(produced.refused, refused, strict=True):
            reason = why if answer.verdict == "pass" else "the reason is not shown: it quotes what is held out"
            self.rejected.append(Rejection(digest_of(why), "admission", "admission", reason=reason))
        values = [_whole(admitted) for admitted in produced.admitted]
        answers = self.preflight.check((str(n), value) for n, value in enumerate(values))
        for admitted, value, answer in zip(produced.admitted, values, answers, strict=True):
            if self._admits("state", value, answer):
                states.append(admitted.state)
                slices += admitted.slices

    def _admits(self, phase: str, value: Any, answer: Checked) -> bool:
        """Whether a sample may enter; if not, or only because someone said so, that is kept."""
        override = self.overrides.get(digest_of(value)) if answer.verdict != "pass" else None
        if not admits(answer, override):
            self._reject(phase, value, answer)
            return False
        if override is not None:
            self.rejected.append(Rejection(override.sample, OVERRIDDEN, answer.findings[0].rule, reason=str(override)))
        return True

    def _reject(self, phase: str, value: Any, answer: Checked) -> None:
        for finding in answer.findings:
            self.rejected.append(
                Rejection(
                    digest_of(value),
                    phase,
                    finding.rule,
                    finding.kind,
                    finding.path,
                    finding.start,
                    finding.end,
                    finding.reason,
                )
            )


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


def read_tasks(path: Path) -> list[Task]:
    """Read tasks from a JSONL file, one a line.

    Raises:
        SynthesisError: For a line that is not a task, naming file and line.
    """
    tasks = []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SynthesisError(f"can't read {path}: {error}", remedy="check --tasks") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            tasks.append(Task.model_validate_json(line))
        except ValueError as error:
            first = str(error).splitlines()[-2].strip() if "\n" in str(error) else str(error)
            raise SynthesisError(
                f"{path}:{number} is not a task: {first}", remedy="see `bat bank build --help`"
            ) from error
    return tasks
