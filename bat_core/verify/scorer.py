"""Scorer: seals a rollout's evidence, asks the verifiers, returns the reward."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from bat_core.config.schema import VerifyConfig
from bat_core.errors import BatError, PluginError
from bat_core.hooks.domain import Domain
from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.evidence import Evidence
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.model.verdict import ItemVerdict
from bat_core.registry import load
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.verify.chain import verify_chain
from bat_core.verify.disclosure import kept
from bat_core.verify.integrity import breach
from bat_core.verify.reward import reward, stage_scores, unscorable


class Scorer:
    """Scores rollouts of one domain.

    Args:
        domain: Its verifiers, contract and truth.
        store: Where the sealed workspaces are.
        key: The run's secret, with which the receipts of its states and rollouts were written.
        settings: How rollouts are judged.
    """

    def __init__(
        self, domain: Domain, store: SnapshotStore, key: bytes = b"", settings: VerifyConfig | None = None
    ) -> None:
        self._contract = domain.contract()
        self._checks = domain.verifiers()
        self._store = store
        self._key = key
        self._settings = settings or VerifyConfig()
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

    async def score(self, state: StageState, rollout: Rollout, *, whole: bool = False) -> Reward:
        """Return the reward; null with a reason where the rollout was lost or could not be judged.

        Args:
            state: Where the rollout began.
            rollout: What was done.
            whole: Judge every item, whatever `verify.drop` says.
        """
        if rollout.end == "lost":
            return unscorable(f"rollout lost: {rollout.reason}")
        if not verify_chain(self._key, (*state.receipts, *rollout.receipts)):
            # Only we write receipts, with a key that no sandbox sees: whatever broke the chain, no policy did.
            return unscorable("the chain of receipts is broken: they are not what this run's harness wrote")
        share = 0.0 if whole else self._settings.drop
        return await self.assess([kept(rubric, share, state.id) for rubric in state.rubrics], self.seal(state, rollout))

    async def assess(self, rubrics: Sequence[Rubric], evidence: Evidence) -> Reward:
        """Return the reward of sealed evidence under these contracts."""
        verdicts = await self.judge(rubrics, evidence)
        stages = stage_scores(rubrics, verdicts)
        e2e = evidence.focus == E2E
        task = self._contract.task_score(evidence.task, evidence.files) if e2e else None
        agentic = self._contract.aggregate({stage.stage: stage.score for stage in stages})
        tampered = breach(evidence, self._contract.protected()) or self._contract.breach(evidence)
        return reward(stages, agentic, task, e2e=e2e, breach=tampered)

    async def judge(self, rubrics: Sequence[Rubric], evidence: Evidence) -> Mapping[str, list[ItemVerdict]]:
        """Return verdicts by stage, one an item; a verifier that breaks judges nothing."""

        async def stage(items: tuple[RubricItem, ...]) -> list[ItemVerdict]:
            return list(await asyncio.gather(*(self._verify(item, evidence) for item in items)))

        return {rubric.stage: await stage(rubric.items) for rubric in rubrics}

    def used(self) -> Sequence[RubricVerifier]:
        """Return the verifiers that were asked so far, the domain's own checks aside."""
        return tuple(self._verifiers.values())

    async def aclose(self) -> None:
        """Let verifiers go: connections of a judge, sandboxes of checks."""
        for verifier in (*self._verifiers.values(), *self._checks.values()):
            await verifier.aclose()

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
            self._verifiers[kind] = _made(load("verifiers", kind), self._checks if kind == "check" else self._settings)
        return self._verifiers[kind]


def _made(cls: Any, argument: object) -> RubricVerifier:
    try:
        made: RubricVerifier = cls(argument)
    except BatError:
        raise
    except Exception as error:  # boundary: a foreign constructor may raise anything
        raise PluginError(
            f"verifier {cls.__module__}:{cls.__qualname__} can't be made: {type(error).__name__}: {error}",
            remedy="take the run's verify settings as the only argument",
        ) from error
    return made


def _unjudged(item: RubricItem, what: str) -> ItemVerdict:
    return ItemVerdict(item=item.id, passed=None, evidence=0.0, reason=f"verifier {item.verifier} {what}")
