"""SuiteEvaluator: a list of tasks that only the evaluator process holds, run end to end and paired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from bat_core.bank.trajectory import opening, rubrics_of
from bat_core.errors import EvaluatorError
from bat_core.evaluate.cells import Cell, by_stage, by_track, cell, failures, mean
from bat_core.evaluate.pairs import difference, pair
from bat_core.executors import LocalExecutor
from bat_core.hooks.domain import Domain
from bat_core.hooks.evaluator import EvalProgress, Evaluator
from bat_core.model.base import digest_of
from bat_core.model.diagnosis import Diagnosis, Paired
from bat_core.model.leakage import HeldoutItem
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.model.task import Task
from bat_core.model.training import PolicyRef
from bat_core.rollout.collect import Batch, Job, Scored, collect
from bat_core.rollout.lab import LabSpec, lab_for

COLLECT = f"{collect.__module__}:{collect.__name__}"
ENGINE = "evaluator"
CELLS = TypeAdapter(list[Cell])
REPAIRS = 1
"""How often an invalid cell is tried again before it is excluded from both sides of its pair."""


class SuiteEvaluator(Evaluator):
    """Runs a policy through every task of a suite.

    Args:
        domain: The domain whose contract and checks apply.
        suite: `heldout` or `blind`.
        tasks: The tasks.
        items: What of them must never be trained on.
        settings: `lab` (a LabSpec), `folder` for cells, `device`, `threads`, `temperature`, `repeats`, `resamples`,
            `confidence`. Only `lab` and `folder` lack a default.
    """

    def __init__(
        self,
        domain: Domain,
        suite: str,
        tasks: Sequence[Task],
        items: Sequence[HeldoutItem],
        settings: Mapping[str, Any],
    ) -> None:
        self._domain = domain
        self._contract = domain.contract()
        self._tasks = tasks
        self._items = items
        self._settings = settings
        self._suite = digest_of([suite, [task.model_dump(mode="json") for task in tasks]])

    def heldout(self) -> Sequence[HeldoutItem]:
        """Return what must never be trained on."""
        return self._items

    def evaluate(self, policy: PolicyRef, against: PolicyRef | None, progress: EvalProgress) -> Diagnosis:
        """Return aggregates of `policy`, paired with `against`, whose cells are kept from its own evaluation."""
        cells = self._cells(policy, progress)
        reference = self._cells(against, progress) if against is not None else []
        stages = [stage.id for stage in self._contract.stages()]
        tracks = list(self._contract.tracks())
        valid = [one for one in cells if one.valid]
        pairs = pair(cells, reference)
        return Diagnosis(
            policy=policy.digest,
            suite=self._suite,
            against=against.digest if against else None,
            overall=mean([one.overall for one in valid]),
            agentic=mean([one.agentic for one in valid]),
            task=mean([one.task for one in valid]),
            stages=by_stage(cells, stages),
            tracks=by_track(cells, tracks),
            n=len(valid),
            invalid=len(cells) - len(valid),
            finished=mean([float(one.finished) for one in valid]),
            gains=self._gains(pairs, {"overall": lambda c: c.overall, "task": lambda c: c.task}),
            stage_gains=self._gains(pairs, {stage: partial(_of_stage, stage) for stage in stages}),
            track_gains=self._gains(pairs, {track: partial(_of_track, track) for track in tracks}),
            failures=failures(cells, stages),
        )

    def _gains(
        self, pairs: Sequence[tuple[Cell, Cell]], reads: Mapping[str, Callable[[Cell], float | None]]
    ) -> dict[str, Paired]:
        resamples = int(self._settings.get("resamples", 2000))
        confidence = float(self._settings.get("confidence", 0.9))
        found = {
            name: difference([(read(mine), read(theirs)) for mine, theirs in pairs], resamples, confidence, 0)
            for name, read in reads.items()
        }
        return {name: paired for name, paired in found.items() if paired is not None}

    def _cells(self, policy: PolicyRef, progress: EvalProgress) -> list[Cell]:
        """Return the cells of a policy, from the evaluator's own folder if they were made before."""
        path = Path(self._settings["folder"]) / f"{policy.digest[7:39]}-{self._conditions()[7:19]}.json"
        if path.exists():
            try:
                return CELLS.validate_json(path.read_bytes())
            except ValueError as error:
                raise EvaluatorError(f"{path} is damaged", remedy="remove it; the policy is evaluated again") from error
        cells = self._run(policy, progress)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(CELLS.dump_json(cells))
        partial.replace(path)
        return cells

    def _conditions(self) -> str:
        """Return the digest of what cells depend on besides the policy: scores under other limits are other scores."""
        lab = self._lab()
        how = [self._settings.get("repeats", 1), self._settings.get("temperature", 1.0), lab.rollout.model_dump()]
        judged = [lab.verify.hidden, lab.verify.judge.models, lab.verify.judge.votes]
        return digest_of([self._suite, how, judged] if any(judged[:2]) else [self._suite, how])

    def _lab(self) -> LabSpec:
        """Return the lab of the settings; a benchmark judges every item."""
        lab = LabSpec.model_validate(self._settings["lab"])
        return lab.model_copy(update={"verify": lab.verify.model_copy(update={"drop": 0.0})})

    def _run(self, policy: PolicyRef, progress: EvalProgress) -> list[Cell]:
        lab = self._lab()
        states = [self._state(lab, task) for task in self._tasks]
        wanted = [(state, repeat) for repeat in range(int(self._settings.get("repeats", 1))) for state in states]
        _attach(policy, self._settings)
        cells: dict[tuple[str, int], Cell] = {}
        for _ in range(1 + REPAIRS):
            missing = [(s, r) for s, r in wanted if (s.id, r) not in cells or not cells[s.id, r].valid]
            if not missing:
                break
            for (state, repeat), one in zip(missing, self._collect(lab, missing, progress), strict=True):
                task = state.task
                cells[state.id, repeat] = cell(self._contract, task.id, task.track, repeat, one.reward)
        return [cells[state.id, repeat] for state, repeat in wanted]

    def _collect(self, lab: LabSpec, wanted: Sequence[tuple[StageState, int]], progress: EvalProgress) -> list[Scored]:
        jobs = [Job(state, repeat, _seed(state.id, repeat)) for state, repeat in wanted]
        executor = LocalExecutor(0)
        scored: list[Scored] = []
        size = max(1, lab.rollout.live)
        batches = [Batch(lab, ENGINE, jobs[i : i + size]) for i in range(0, len(jobs), size)]
        for part in executor.map(COLLECT, batches):
            scored += part
            progress(len(scored), len(jobs))
        return scored

    def _state(self, spec: LabSpec, task: Task) -> StageState:
        lab = lab_for(spec)
        rubrics = rubrics_of(lab, task)
        return StageState(
            id=task.id,
            task=task,
            focus=E2E,
            stratum=task.stratum,
            snapshot=lab.store.put_files(self._contract.workspace(task)),
            messages=opening(lab.contract, task, rubrics),
            rubrics=rubrics,
        )


def _of_stage(stage: str, one: Cell) -> float | None:
    return one.stages.get(stage)


def _of_track(track: str, one: Cell) -> float | None:
    return one.overall if one.track == track else None


def _seed(state: str, repeat: int) -> int:
    """Return the seed of a cell: the same for every policy, so that pairs share their random numbers."""
    return int(digest_of(["cell", state, repeat])[7:22], 16)


def _attach(policy: PolicyRef, settings: Mapping[str, Any]) -> None:
    import torch

    from bat_core.rollout.engine import attach
    from bat_core.rollout.transformers_engine import TransformersEngine
    from bat_core.training.checkpoint import load

    torch.set_num_threads(int(settings.get("threads", 1)))
    model, tokenizer = load(policy, str(settings.get("device", "cpu")), bf16=settings.get("device") == "cuda")
    attach(ENGINE, TransformersEngine(model, tokenizer, float(settings.get("temperature", 1.0))))
