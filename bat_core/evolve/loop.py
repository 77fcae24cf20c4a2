"""Evolution: base, bank, cold start, rounds of {prescribe, train, evaluate, decide}, blind suite, summary.

Every phase is one entry of the journal. A phase that is there is not done again; one that is not is done from its
beginning, from inputs that the journal names by digest, so that an interrupted run ends as an undisturbed one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bat_core import registry
from bat_core.bank.builder import Builder
from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.store import Bank, read
from bat_core.config.load import Resolved
from bat_core.curriculum.batches import batches
from bat_core.errors import ConfigError, RunError
from bat_core.evaluate.client import EvaluatorProcess
from bat_core.evolve.base_policy import base_policy
from bat_core.evolve.directory import RunDirectory, write_json
from bat_core.evolve.preflight import open_preflight, overrides_of
from bat_core.evolve.records import RoundRecorder
from bat_core.evolve.settings import evaluator_settings, lab_spec, seed_of, trainer_settings
from bat_core.evolve.summary import summarize
from bat_core.executors import LocalExecutor
from bat_core.hooks.curriculum import CurriculumPolicy
from bat_core.hooks.domain import Suite
from bat_core.hooks.trainer import PolicyTrainer, TrainJob
from bat_core.model.base import JsonObject, digest_of
from bat_core.model.decision import Decision, Signals
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History, RoundRecord
from bat_core.model.mixture import Mixture
from bat_core.model.run import BankReport, RunInfo, RunSummary
from bat_core.model.state import StageState
from bat_core.model.training import PolicyRef, TrainResult
from bat_core.rollout.lab import close_labs

Progress = Callable[[str, int, int, JsonObject], None]
Announce = Callable[[str, object], None]


class Evolution:
    """One run. Use `run()` once.

    Args:
        resolved: The configuration.
        run: Its directory, open.
        progress: Called with (phase, done, total, metrics).
        announce: Called with (event, value) as things happen.
    """

    def __init__(self, resolved: Resolved, run: RunDirectory, progress: Progress, announce: Announce) -> None:
        self.config = resolved.config
        self.directory = run
        self.journal = run.journal
        self._progress = progress
        self._announce = announce
        self.domain = registry.load_domain(self.config.domain)
        self.stages = self.domain.contract().stages()
        self._plugins = registry.package_digest(type(self.domain).__module__)
        self.lab = lab_spec(self.config, run)
        self.settings = trainer_settings(self.config, self.lab)
        self.trainer: PolicyTrainer = registry.load("trainers", self.config.train.trainer)()
        self.curriculum: CurriculumPolicy = registry.load("curricula", self.config.loop.curriculum)(self.config)
        self.observers = registry.Observers()
        self.info = RunInfo(
            name=run.path.name,
            directory=str(run.path),
            domain=self.config.domain,
            seed=self.config.seed,
            config=digest_of(self.config.model_dump(mode="json")),
        )
        self._check()
        run.bind({"configuration": self.info.config, "domain": self._plugins})
        self._bank: Bank | None = None

    def _check(self) -> None:
        for problem in self.trainer.check(self.settings):
            raise ConfigError(f"{problem.key}: {problem.message}", remedy=problem.remedy)

    def run(self) -> RunSummary:
        """Go on where the journal ends, to the end."""
        self._emit("bat_run_start")
        with self._evaluator("heldout") as heldout, self._evaluator("blind") as blind:
            try:
                self._build_bank()
                coldstart = self._coldstart()
                history = History(coldstart=self._evaluate(heldout, "coldstart", coldstart, None))
                self._announce("coldstart", history.coldstart)
                policies = {0: coldstart}
                while not (history.rounds and history.rounds[-1].decision.stop):
                    history = self._round(heldout, history, policies)
                best = policies[self._best_round(history)]
                summary = self._finish(blind, history, coldstart, best)
            finally:
                close_labs()
        self._emit("bat_run_end", summary=summary)
        return summary

    # -- bank and cold start ------------------------------------------------------------------------------

    def _build_bank(self) -> None:
        def work() -> JsonObject:
            synthesizer = registry.load("synthesizers", self.config.bank.synthesizer)(self.domain)
            contract = self.domain.contract()
            tasks = make_tasks(synthesizer, requests(contract, self.config.bank.tasks, seed_of(self.config, "bank")))
            executor = LocalExecutor(self.config.bank.workers)
            try:
                with open_preflight(self.config, self.directory) as preflight:
                    progress = lambda done, total: self._progress("bank", done, total, {})  # noqa: E731
                    builder = Builder(self.directory.bank, self.lab, executor, preflight, progress)
                    builder.overrides = overrides_of(self.config)
                    report = builder.build(contract, tasks)
            finally:
                executor.close()
            return report.model_dump(mode="json")

        report = BankReport.model_validate(self.journal.once("bank", work))
        self._emit("bat_bank_built", report=report)
        self._announce("bank", report)

    @property
    def bank(self) -> Bank:
        """The bank, read once; every digest is verified, and it is the one that the journal names.

        Raises:
            RunError: If it is another bank.
        """
        if self._bank is None:
            self._bank = read(self.directory.bank)
            named = (self.journal.get("bank") or {}).get("digest")
            if self._bank.report.digest != named:
                raise RunError(
                    f"{self.directory.bank} is not the bank this run began with", remedy="choose another --run"
                )
        return self._bank

    def _coldstart(self) -> PolicyRef:
        def work() -> JsonObject:
            output = self.directory.path / "coldstart"
            self.directory.discard(output)
            phase = lambda name, done, total: self._progress(name, done, total, {})  # noqa: E731
            base = base_policy(self.config, self.domain, self.lab, self._plugins, phase)
            job = TrainJob(
                base, output, self.settings, seed_of(self.config, "coldstart") % 2**31, progress=self._progress
            )
            result = self.trainer.coldstart(job, self.bank.slices)
            return {"base": base.digest, "result": result.model_dump(mode="json")}

        return self._policy("coldstart", TrainResult.model_validate(self.journal.once("coldstart", work)["result"]))

    def _policy(self, where: str, result: TrainResult) -> PolicyRef:
        """Return the policy in its folder below this run, wherever the run lies now, with its recorded digest."""
        return PolicyRef(path=str(self.directory.path.resolve() / where), digest=result.policy.digest)

    # -- rounds -------------------------------------------------------------------------------------------

    def _round(self, heldout: EvaluatorProcess, history: History, policies: dict[int, PolicyRef]) -> History:
        number = len(history.rounds) + 1
        mixture = Mixture.model_validate(
            self.journal.once(
                f"mixture:{number}", lambda: self.curriculum.prescribe(history, self.stages).model_dump(mode="json")
            )
        )
        self._emit("bat_round_start", mixture=mixture)
        self._announce("mixture", mixture)
        best = policies[self._best_round(history)]
        start = policies[self._start_round(history)]
        result = self._train(number, mixture, start, best)
        candidate = self._policy(f"rounds/{number:02d}/candidate", result)
        policies[number] = candidate
        diagnosis = self._evaluate(heldout, str(number), candidate, best)
        self._emit("bat_round_evaluated", diagnosis=diagnosis)
        signals = Signals(finite=result.finite, kl=result.kl, kl_k3=result.kl_k3, reward=result.reward_mean)
        decision = self._decide(number, history, diagnosis, signals)
        record = RoundRecord(round=number, mixture=mixture, diagnosis=diagnosis, signals=signals, decision=decision)
        self._announce("round", record)
        return History(coldstart=history.coldstart, rounds=(*history.rounds, record))

    def _train(self, number: int, mixture: Mixture, start: PolicyRef, best: PolicyRef) -> TrainResult:
        def work() -> JsonObject:
            folder = self.directory.round(number)
            self.directory.discard(folder)
            write_json(folder / "mixture.json", mixture.model_dump(mode="json"))
            recorder = RoundRecorder()

            def progress(phase: str, done: int, total: int, metrics: JsonObject) -> None:
                if metrics:
                    recorder.metric(done, metrics)
                self._progress(f"round {number}", done, total, metrics)

            def listen(state: StageState, rollout: object, reward: object) -> None:
                recorder.rollout(state, rollout, reward)  # type: ignore[arg-type]
                self.observers.emit("bat_rollout_scored", run=self.info, rollout=rollout, reward=reward)

            job = TrainJob(
                policy=start,
                output=folder / "candidate",
                settings=self.settings,
                seed=seed_of(self.config, "round", number),
                reference=best,
                probe=self._probe(),
                batches=batches(
                    mixture, self.bank.states, self.config.train.steps, seed_of(self.config, "batches", number)
                ),
                progress=progress,
                listen=listen,
            )
            result = self.trainer.train(job)
            recorder.write(folder)
            return result.model_dump(mode="json")

        return TrainResult.model_validate(self.journal.once(f"train:{number}", work))

    def _probe(self) -> Sequence[StageState]:
        """Return the probe states of this run: fixed, all stages and E2E in turn."""
        first, *others = [stage.id for stage in self.stages]
        shares = {"target": 1, "mix": 2, "e2e": 1}
        mixture = Mixture(round=1, target=first, groups=shares, mix=tuple(others), reason="probe")
        steps = -(-self.config.train.probe // sum(shares.values()))
        drawn = batches(mixture, self.bank.states, steps, seed_of(self.config, "probe"))
        return [state for batch in drawn for state in batch][: self.config.train.probe]

    def _decide(self, number: int, history: History, diagnosis: Diagnosis, signals: Signals) -> Decision:
        def work() -> JsonObject:
            decision = self.curriculum.decide(history, diagnosis, signals, self.stages)
            write_json(self.directory.round(number) / "decision.json", decision.model_dump(mode="json"))
            return decision.model_dump(mode="json")

        decision = Decision.model_validate(self.journal.once(f"decision:{number}", work))
        self._emit("bat_decision", decision=decision)
        return decision

    def _best_round(self, history: History) -> int:
        """Return the round that theta* comes from; 0 is the cold start."""
        promoted = [record.round for record in history.rounds if record.decision.outcome == "promoted"]
        return promoted[-1] if promoted else 0

    def _start_round(self, history: History) -> int:
        """Return the round whose weights the next one starts from: theta* after a rollback, a held candidate else."""
        if not history.rounds:
            return 0
        last = history.rounds[-1]
        if last.decision.outcome == "held" and self.config.gate.on_hold == "continue":
            return last.round
        return self._best_round(history)

    # -- evaluation and the end ---------------------------------------------------------------------------

    def _evaluator(self, suite: Suite) -> EvaluatorProcess:
        settings = evaluator_settings(self.config, self.directory, suite)
        return EvaluatorProcess(self.config.domain, suite, settings, self.directory.evaluator)

    def _evaluate(
        self,
        evaluator: EvaluatorProcess,
        name: str,
        policy: PolicyRef,
        against: PolicyRef | None,
        suite: str = "evaluate",
    ) -> Diagnosis:
        def work() -> JsonObject:
            progress = lambda done, total: self._progress(f"{suite} {name}", done, total, {})  # noqa: E731
            diagnosis = evaluator.evaluate(policy, against, progress)
            return diagnosis.model_dump(mode="json")

        diagnosis = Diagnosis.model_validate(self.journal.once(f"{suite}:{name}", work))
        if name.isdigit():
            write_json(self.directory.round(int(name)) / "diagnosis.json", diagnosis.model_dump(mode="json"))
        return diagnosis

    def _finish(self, blind: EvaluatorProcess, history: History, coldstart: PolicyRef, best: PolicyRef) -> RunSummary:
        before = self._evaluate(blind, "coldstart", coldstart, None, "blind")
        after = self._evaluate(blind, "best", best, coldstart, "blind")
        summary = summarize(self.info, self.journal, history, before, after, self.observers.dropped)
        write_json(self.directory.path / "summary.json", summary.model_dump(mode="json"))
        return summary

    def _emit(self, event: str, **values: object) -> None:
        self.observers.emit(event, run=self.info, **values)


def config_file(resolved: Resolved, path: Path) -> None:
    """Write the resolved configuration with the origin of each value as a comment."""
    from bat_core.config.show import as_yaml

    partial = path.with_suffix(".partial")
    partial.write_text(as_yaml(resolved))
    partial.replace(path)
