"""Making generations of a run's bank: what is asked of the synthesizer, and the building itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bat_core.bank.builder import Builder
from bat_core.bank.plan import make_tasks, requests
from bat_core.config.schema import Config
from bat_core.evolve.directory import RunDirectory
from bat_core.evolve.preflight import open_preflight, overrides_of
from bat_core.evolve.settings import lab_spec, proof_folder, seed_of, teacher_of
from bat_core.executors import LocalExecutor
from bat_core.hooks.domain import Domain
from bat_core.model.run import BankReport
from bat_core.model.task import Task
from bat_core.registry import load

Progress = Callable[[int, int], None]


def synthesized(config: Config, domain: Domain, count: int, start: int = 0) -> list[Task]:
    """Return `count` tasks of the configured synthesizer, behind the first `start` of the same seed."""
    settings = config.bank.model_copy(update={"teacher": teacher_of(config)})
    synthesizer = load("synthesizers", config.bank.synthesizer).opened(domain, settings.model_dump(mode="json"))
    wanted = requests(domain.contract(), count, seed_of(config, "bank"), start)
    try:
        synthesizer.expect(count)
        return make_tasks(synthesizer, wanted)
    finally:
        synthesizer.close()


def tasks_of(config: Config, domain: Domain, generation: int) -> list[Task]:
    """Return the tasks of a generation: cut by count, so that they follow from the seed."""
    if generation == 1:
        return synthesized(config, domain, config.bank.tasks)
    grow = config.bank.grow
    return synthesized(config, domain, grow, config.bank.tasks + (generation - 2) * grow)


def build(
    config: Config, run: RunDirectory, domain: Domain, tasks: Sequence[Task], progress: Progress, generation: int = 1
) -> tuple[BankReport, bool]:
    """Build a generation in a run's bank; return its report, and whether it was there already."""
    workers = config.bank.workers if generation == 1 else max(1, config.bank.workers)  # later ones are made aside
    executor = LocalExecutor(workers)
    try:
        with open_preflight(config, run) as preflight:
            builder = Builder(
                run.bank,
                lab_spec(config, run),
                executor,
                preflight,
                progress,
                generation,
                config.bank.similar,
                proof_folder(config),
            )
            builder.teacher = teacher_of(config) if config.bank.expert == "teacher" else None
            builder.overrides = overrides_of(config)
            return builder.build(domain.contract(), tasks), builder.found
    finally:
        executor.close()
