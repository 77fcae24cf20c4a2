"""The plugin: everything of the two tracks behind one class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from bat_core.hooks.actor import Actor
from bat_core.hooks.contract import StageContract
from bat_core.hooks.domain import Domain, Suite
from bat_core.hooks.evaluator import Evaluator
from bat_core.hooks.fault import Fault
from bat_core.hooks.synthesizer import TaskSynthesizer
from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.sandbox import Limits, SandboxSpec
from bat_core.model.task import Task
from bat_medimaging import cheats, hostile, names, suites
from bat_medimaging.checks.base import FunctionVerifier
from bat_medimaging.contract import STAGES, MedImagingContract
from bat_medimaging.expert import Expert
from bat_medimaging.faults import CATALOGUE
from bat_medimaging.items import ITEMS
from bat_medimaging.synthesizer import OfflineSynthesizer

HERE = Path(__file__).parent
PRELOAD = ("numpy", "PIL.Image", "phx")
LIMITS = Limits(exec_s=20.0, memory=384 << 20, pids=32, disk=32 << 20, inodes=4000, output=64 << 10, read=8 << 20)


class MedImagingDomain(Domain):
    """Fictional segmentation and classification workflows. Not clinical."""

    title = "medimaging"

    def contract(self) -> StageContract:
        """Return the five stages."""
        return MedImagingContract()

    def synthesizer(self) -> TaskSynthesizer:
        """Return the offline synthesizer."""
        return OfflineSynthesizer()

    def expert(self, task: Task, slips: Random | None = None) -> Actor:
        """Return the script that solves `task`."""
        return Expert(task, slips)

    def novice(self, task: Task, rng: Random) -> Actor:
        """Return the script of someone who errs as often as the expert's attempts, and seldom notices."""
        return Expert(task, rng, noticed=0.25)

    def verifiers(self) -> Mapping[str, RubricVerifier]:
        """Return one check for each item."""
        return {item.name: FunctionVerifier(item.check) for item in ITEMS}

    def workflow(self) -> Path:
        """Return the public description of the workflow."""
        return HERE / "workflow.md"

    def sandbox(self) -> SandboxSpec:
        """Return toolbelt, preloaded modules and tight limits."""
        env = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        return SandboxSpec(env=env, toolbelt=str(HERE / "toolbelt"), preload=PRELOAD, limits=LIMITS)

    def skills(self) -> Mapping[str, Path]:
        """Return the stages' skills, which also lie in every workspace."""
        return {stage.id: HERE / "skills" / f"{stage.id}.md" for stage in STAGES}

    def base(self) -> Path | None:
        """Return the tiny base policy that ships with the package; `make base` rebuilds it."""
        folder = HERE / "base"
        return folder if (folder / "model.safetensors").exists() else None

    def faults(self) -> Sequence[Fault]:
        """Return the catalogue."""
        return CATALOGUE

    def cheats(self, task: Task) -> Sequence[Actor]:
        """Return known hacks. Run them in a real sandbox and nowhere else."""
        return [*cheats.cheats_of(task), *hostile.hostile_of(task)]

    def names(self) -> Sequence[str]:
        """Return all opaque words."""
        return names.all_words()

    def evaluator(self, suite: Suite, settings: Mapping[str, Any]) -> Evaluator:
        """Return the benchmark of one suite."""
        from bat_core.evaluate.suite import SuiteEvaluator

        count = int(settings.get("tasks", suites.DEFAULT_COUNT))
        key = str(settings.get("key", ""))
        tasks = suites.heldout_tasks(count, key) if suite == "heldout" else suites.blind_tasks(count, key)
        items = suites.heldout_items(tasks)
        return SuiteEvaluator(domain=self, suite=suite, tasks=tasks, items=items, settings=settings)

    def failure_categories(self) -> Sequence[str]:
        """Return the ids of faults and items, the only failure words that may cross the firewall."""
        return tuple(fault.id for fault in CATALOGUE) + tuple(item.id.replace(".", "-") for item in ITEMS)
