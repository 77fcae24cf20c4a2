"""Scorer: seals a rollout's evidence, asks the verifiers, returns the reward."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bat_core.errors import BatError
from bat_core.hooks.domain import Domain
from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.evidence import Evidence
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import RubricItem
from bat_core.model.state import StageState
from bat_core.model.verdict import ItemVerdict
from bat_core.registry import load
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.verify.chain import verify_chain
from bat_core.verify.integrity import breach
from bat_core.verify.reward import reward, stage_scores, unscorable


class Scorer:
    """Scores rollouts of one domain.

    Args:
        domain: Its verifiers, contract and truth.
        store: Where the sealed workspaces are.
        key: The run's secret, with which the receipts of its states and rollouts were written.
    """

    def __init__(self, domain: Domain, store: SnapshotStore, key: bytes = b"") -> None:
        self._contract = domain.contract()
        self._checks = domain.verifiers()
        self._store = store
        self._key = key
        self._verifiers: dict[str, RubricVerifier] = {}

    def seal(self, state: StageState, rollout: Rollout) -> Evidence:
        """Return what verifiers may read: receipts, artifact bytes, messages; never the live workspace."""
        final = rollout.final or state.snapshot
        last = rollout.messages[-1] if rollout.messages else None
        return Evidence(
            task=state.task,
            focus=state.focus,
            start=self._store.files(state.snapshot),
            files=self._store.files(final),
            history=state.receipts,
            receipts=rollout.receipts,
            messages=rollout.messages,
            final=last.content if last is not None and last.role == "assistant" and not last.tool_calls else "",
            odd=self._store.odd(final),
        )

    async def score(self, state: StageState, rollout: Rollout) -> Reward:
        """Return the reward; null with a reason where the rollout was lost or could not be judged."""
        if rollout.end == "lost":
            return unscorable(f"rollout lost: {rollout.reason}")
        if not verify_chain(self._key, (*state.receipts, *rollout.receipts)):
            # Only we write receipts, with a key that no sandbox sees: whatever broke the chain, no policy did.
            return unscorable("the chain of receipts is broken: they are not what this run's harness wrote")
        evidence = self.seal(state, rollout)
        verdicts = await self._judge(state, evidence)
        stages = stage_scores(state.rubrics, verdicts)
        task = self._contract.task_score(state.task, evidence.files) if state.is_e2e else None
        agentic = self._contract.aggregate({stage.stage: stage.score for stage in stages})
        tampered = breach(evidence, self._contract.protected())
        return reward(stages, agentic, task, e2e=state.is_e2e, breach=tampered)

    async def _judge(self, state: StageState, evidence: Evidence) -> Mapping[str, list[ItemVerdict]]:
        async def stage(items: tuple[RubricItem, ...]) -> list[ItemVerdict]:
            return list(await asyncio.gather(*(self._verify(item, evidence) for item in items)))

        return {rubric.stage: await stage(rubric.items) for rubric in state.rubrics}

    async def _verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        verifier = self._verifier(item.verifier)
        try:
            verdict = await verifier.verify(item, evidence)
        except BatError:
            raise
        except Exception as error:  # noqa: BLE001  # boundary: a verifier that breaks judges nothing
            return _unjudged(item, f"raised {type(error).__name__}: {error}")
        if not isinstance(verdict, ItemVerdict):
            return _unjudged(item, f"returned {type(verdict).__name__} instead of a verdict")
        if verdict.item != item.id:
            return _unjudged(item, f"judged {verdict.item!r} instead of {item.id!r}")
        return verdict

    def _verifier(self, name: str) -> RubricVerifier:
        kind = name.partition(":")[0]
        if kind not in self._verifiers:
            cls = load("verifiers", kind)
            self._verifiers[kind] = cls(self._checks) if kind == "check" else cls()
        return self._verifiers[kind]


def _unjudged(item: RubricItem, what: str) -> ItemVerdict:
    return ItemVerdict(item=item.id, passed=None, evidence=0.0, reason=f"verifier {item.verifier} {what}")
