"""The `teacher` synthesizer: patterns from the public workflow, proposals kept if they are new to the pool."""

from __future__ import annotations

import random
from collections.abc import Iterator

from loguru import logger

from bat_core.bank.duplicates import Pool, prompt_of
from bat_core.bank.teacher.exchange import Exchange
from bat_core.bank.teacher.forms import Pattern, Patterns, Proposal, patterns_prompt, proposal_prompt, workflow
from bat_core.bank.teacher.ledger import estimate, line
from bat_core.config.schema import TeacherConfig
from bat_core.hooks.domain import Domain
from bat_core.hooks.synthesizer import SynthesisRequest, TaskSynthesizer
from bat_core.model.base import JsonObject, digest_of
from bat_core.model.task import Task

SHOWN = 6
"""Tasks of the pool that a proposal is asked beside."""


class TeacherSynthesizer(TaskSynthesizer):
    """Asks a model for tasks. What it answers is fixed by its cache, so that the same requests give the same tasks.

    Args:
        domain: Whose public workflow the teacher reads, and who makes a task of a proposal.
        settings: The teacher.
    """

    def __init__(self, domain: Domain, settings: TeacherConfig | None = None) -> None:
        self._domain = domain
        self._offline = domain.synthesizer()
        self._exchange = Exchange(settings or TeacherConfig())
        self._pool = Pool(self._exchange.settings.similar)
        self._proposed: list[Proposal] = []
        self._patterns: tuple[Pattern, ...] = ()
        self.refused = 0

    @classmethod
    def opened(cls, domain: Domain, settings: JsonObject) -> TeacherSynthesizer:
        """Return the synthesizer of a configuration's section `bank`."""
        return cls(domain, TeacherConfig.model_validate(settings["teacher"]))

    def expect(self, tasks: int) -> None:
        """Say what proposing so many tasks costs at most."""
        characters = len(workflow(self._domain)) + 6000
        logger.info(estimate(1 + tasks, characters, self._exchange.settings))

    def synthesize(self, request: SynthesisRequest) -> Iterator[Task]:
        """Yield the domain's tasks for the teacher's proposals."""
        for place in range(request.count):
            proposal = self._propose(request, place)
            seed = int(digest_of([request.seed, place, proposal.model_dump()])[7:19], 16)
            wanted = request.model_copy(update={"count": 1, "seed": seed})
            for task in self._offline.synthesize(wanted):
                yield self._domain.told(task, proposal.model_dump())

    def _propose(self, request: SynthesisRequest, place: int) -> Proposal:
        """Return a new proposal; after some that were not new, the last one is taken: the bank leaves copies out."""
        if not self._patterns:
            self._patterns = self._exchange.ask(patterns_prompt(self._domain), Patterns).patterns
        rng = random.Random(digest_of(["pool", request.seed, place]))
        seeds = rng.sample(self._proposed, min(SHOWN, len(self._proposed)))
        refused = ""
        for attempt in range(self._exchange.settings.tries):
            turns = proposal_prompt(self._domain, self._patterns, seeds, request, refused)
            proposal = self._exchange.ask(turns, Proposal, seed=request.seed % 2**31 + place + 7919 * attempt)
            name = f"proposal {len(self._proposed)}"
            prompt = prompt_of(name, f"{proposal.title} {proposal.brief}")
            refused = self._pool.copy_of(prompt)
            if not refused:
                self._pool.add(prompt)
                break
            self.refused += 1
        self._proposed.append(proposal)
        return proposal

    def close(self) -> None:
        """Say what was spent, and close the connections."""
        spent = line(self._exchange.ledger.spent(), self._exchange.settings)
        logger.info(f"teacher: {len(self._proposed)} proposals, {self.refused} not new, so far {spent}")
        self._exchange.close()
