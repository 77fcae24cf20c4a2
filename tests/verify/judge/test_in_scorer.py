"""A judge in the scorer: nulls are counted and shown, a reward is null and not 0."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bat_medimaging import MedImagingDomain

from bat_core.config.schema import JudgeConfig, VerifyConfig
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.verify.scorer import Scorer

ITEMS = tuple(
    RubricItem(id=f"A.{n}", criterion=f"The notes name the worst case and cause {n}.", verifier="judge") for n in "abc"
)


def score(folder: Path, files: Mapping[str, bytes], **settings: Any) -> Reward:
    store = SnapshotStore(folder)
    task = Task(id="t", domain="d", track="t", seed=0)
    rubric = Rubric(stage="S1", items=ITEMS)
    state = StageState(
        id="s",
        task=task,
        focus="S1",
        stratum=Stratum.SUCCESS,
        snapshot=store.put_files({}),
        messages=(),
        rubrics=(rubric,),
    )
    values = {"votes": 1, "retries": 0, "timeout_s": 3.0, **settings}
    scorer = Scorer(MedImagingDomain(), store, settings=VerifyConfig(judge=JudgeConfig(**values)))

    async def go() -> Reward:
        try:
            return await scorer.score(state, Rollout(state="s", final=store.put_files(files)))
        finally:
            await scorer.aclose()

    return asyncio.run(go())


def test_rewards_of_judged_items(endpoint: Any, kit: Any, tmp_path: Path) -> None:
    notes = {"notes.md": kit.NOTES.encode()}
    there = {"endpoint": endpoint.url, "models": ("m",)}
    yes, no = kit.quoting("A1", "Its blob touches dim border"), kit.quoting("A1", "Its blob touches dim border", "no")
    endpoint.answer = lambda body: (no if "cause c" in body["messages"][1]["content"] else yes)(body)
    found = score(tmp_path, notes, **there)
    assert found.value == pytest.approx(2 / 3) and found.nulls == 0 and found.items == 3
    endpoint.answer = lambda body: "7" if "cause c" in body["messages"][1]["content"] else yes(body)
    found = score(tmp_path, notes, **there)
    assert found.value is None and found.nulls == 1 and "answered invalidly twice" in found.reason
    assert len(found.digest) > 20
    found = score(tmp_path, notes)
    assert found.value is None and found.nulls == 3
