"""Domain: the one class that a domain plugin registers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal

from bat_core.errors import ContractError
from bat_core.hooks.actor import Actor
from bat_core.hooks.contract import StageContract
from bat_core.hooks.evaluator import Evaluator
from bat_core.hooks.fault import Fault
from bat_core.hooks.synthesizer import TaskSynthesizer
from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.sandbox import SandboxSpec
from bat_core.model.task import Task

Suite = Literal["heldout", "blind"]


class Domain(ABC):
    """A staged workflow: stages, rubrics, fictional tasks, an expert, checks and benchmarks.

    Everything but `contract`, `synthesizer`, `expert` and `verifiers` has a default.
    """

    api: ClassVar[str] = "1.0"
    title: ClassVar[str] = ""

    @abstractmethod
    def contract(self) -> StageContract:
        """Return stages, rubrics and start states."""

    @abstractmethod
    def synthesizer(self) -> TaskSynthesizer:
        """Return the offline synthesizer."""

    @abstractmethod
    def expert(self, task: Task, slips: Random | None = None) -> Actor:
        """Return an actor that solves `task`, honestly stopping where that can't be done.

        Args:
            task: The task.
            slips: If given, the actor now and then makes a plausible mistake first (`Act.kind == "slip"`):
                the attempts that stand in the history of failure states.
        """

    @abstractmethod
    def verifiers(self) -> Mapping[str, RubricVerifier]:
        """Return the checks that rubric items name as `check:NAME`."""

    def novice(self, task: Task, rng: Random) -> Actor:
        """Return an actor of mixed quality, whose mistakes may stand: half of the logs for a tiny base policy.

        The default makes its mistakes good at once; then a base has little to unlearn.
        """
        return self.expert(task, rng)

    def workflow(self) -> Path | None:
        """Return the public description that a teacher model reads."""
        return None

    def sandbox(self) -> SandboxSpec:
        """Return image, toolbelt, limits and required guarantees."""
        return SandboxSpec()

    def skills(self) -> Mapping[str, Path]:
        """Return stage id to document; shipped into the sandbox, fixed, never trained on."""
        return {}

    def faults(self) -> Sequence[Fault]:
        """Return the catalogue of faults that tasks may hold."""
        return ()

    def cheats(self, task: Task) -> Sequence[Actor]:
        """Return known hacks, each of which must earn no more than an honest failing run."""
        return ()

    def names(self) -> Sequence[str]:
        """Return opaque words (case names and the like) that a tiny policy's tokenizer should not split."""
        return ()

    def base(self) -> Path | None:
        """Return the folder of a small base policy shipped with the domain, with the recipe that rebuilds it."""
        return None

    def told(self, task: Task, proposal: Mapping[str, str]) -> Task:
        """Return `task` as a teacher's proposal (`pattern`, `title`, `brief`) tells it: here in its public part."""
        return task.model_copy(update={"public": {**task.public, **proposal}})

    def evaluator(self, suite: Suite, settings: Mapping[str, Any]) -> Evaluator:
        """Return the benchmark behind the firewall. Called in the evaluator process only."""
        raise ContractError(f"domain {self.title!r} has no {suite} suite", remedy="implement Domain.evaluator")

    def failure_categories(self) -> Sequence[str]:
        """Return the only words that may cross the firewall as keys of `Diagnosis.failures`."""
        return ()

    def defaults(self) -> Mapping[str, Any]:
        """Return configuration defaults of the domain."""
        return {}
