"""The `judge` verifier: gate, votes, quotes; never an exception, never a yes without words in the evidence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from loguru import logger

from bat_core.config.schema import VerifyConfig
from bat_core.endpoint.client import Client, Form
from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.evidence import Evidence
from bat_core.model.rubric import RubricItem
from bat_core.model.verdict import ItemVerdict
from bat_core.verify.judge.answer import Answer, parse, schema
from bat_core.verify.judge.cache import Cache, key_of
from bat_core.verify.judge.cost import Spent
from bat_core.verify.judge.prompt import Prompt, build
from bat_core.verify.judge.quotes import best
from bat_core.verify.judge.sources import Source, all_text, sources_of
from bat_core.verify.judge.votes import Vote, decide
from bat_core.verify.toolbox.claims import claims_all, claims_item
from bat_core.verify.toolbox.finding import NOTHING, Finding
from bat_core.verify.toolbox.words import empty_of


class JudgeVerifier(RubricVerifier):
    """Asks models whether an item holds.

    Args:
        settings: Endpoint, models, votes and limits.
    """

    def __init__(self, settings: VerifyConfig | None = None) -> None:
        self.settings = (settings or VerifyConfig()).judge
        self.spent = Spent()
        self._cache = Cache(Path(self.settings.cache) if self.settings.cache else None)
        self._client: Client | None = None
        self._turns: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        """Return the verdict of the votes; null where too few could be had."""
        self.spent.items += 1
        claimed = claims_all(evidence.final) or claims_item(evidence.final, item.id)
        found = await self._find(item, evidence)
        if claimed and found.passed is False:
            found = Finding(False, found.reason, True, NOTHING)
        return found.verdict(item)

    async def _find(self, item: RubricItem, evidence: Evidence) -> Finding:
        sources = sources_of(evidence, self.settings.source_chars)
        nothing = empty_of(all_text(sources), [item.criterion])
        if nothing:
            self.spent.gated += 1
            return Finding(False, f"not asked: {nothing}")
        if not self.settings.endpoint or not self.settings.models:
            return Finding(None, "no judge is configured: set verify.judge.endpoint and verify.judge.models")
        models = self.settings.models
        asked = [self._vote(item, sources, models[n % len(models)], n) for n in range(self.settings.votes)]
        return decide(await asyncio.gather(*asked))

    async def _vote(self, item: RubricItem, sources: Sequence[Source], model: str, number: int) -> Vote:
        prompt = build(item, sources, number)
        key = key_of(item, model, number, prompt)
        answer = self._cache.get(key)
        if answer is not None:
            self.spent.cached += 1
        else:
            answer, reason = await self._ask(model, prompt, number)
            if answer is None:
                return Vote(None, NOTHING, f"{model} {reason}")
            self._cache.put(key, answer)
        return _heard(answer, prompt, sources, item)

    async def _ask(self, model: str, prompt: Prompt, seed: int) -> tuple[Answer | None, str]:
        """Return an answer, asked for twice, or why there is none."""
        reason = ""
        said = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        for attempt in range(2):
            client, turns = self._here()
            async with turns:
                began = time.monotonic()
                reply = await client.ask(model, said, seed + 1000 * attempt, Form("verdict", schema()))
                self.spent.seconds += time.monotonic() - began
            self.spent.calls += 1
            self.spent.tokens_in += reply.tokens_in
            self.spent.tokens_out += reply.tokens_out
            if reply.text is None:
                self.spent.unreachable += 1
                return None, reply.reason
            read = parse(reply.text)
            if read.value is not None:
                return read.value, ""
            self.spent.invalid += 1
            reason = f"answered invalidly twice ({reply.reason or read.reason})"
        return None, reason

    def _here(self) -> tuple[Client, asyncio.Semaphore]:
        """Return client and turns of the running loop: connections belong to a loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._turns is None or self._loop is not loop:
            self._client, self._loop = Client(self.settings), loop
            self._turns = asyncio.Semaphore(self.settings.concurrency)
        return self._client, self._turns

    async def aclose(self) -> None:
        """Say what was spent, and close the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            logger.info(self.spent.line(self.settings))
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


def _heard(answer: Answer, prompt: Prompt, sources: Sequence[Source], item: RubricItem) -> Vote:
    """Return what an answer counts as: a yes only with a quote that holds and from a reader that obeys no data."""
    if prompt.canary in answer.reason or any(prompt.canary in quote.text for quote in answer.quotes):
        return Vote(False, NOTHING, "the judge did what the data told it to")
    if answer.verdict != "yes":
        return Vote(False, NOTHING, f"{answer.verdict}: {' '.join(answer.reason.split())[:120]}")
    found = best(answer.quotes, sources, item.criterion)
    if found.trust == NOTHING:
        return Vote(False, NOTHING, f"a yes without evidence: {found.where}")
    return Vote(True, found.trust, f"yes by {found.where}")
