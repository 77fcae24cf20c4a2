"""Hidden probes are scored and not told; dropped items are told and not scored; admission and benchmarks see all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bat_medimaging import MedImagingDomain
from hypothesis import given
from hypothesis import strategies as st

from bat_core.bank.trajectory import opening, rubrics_of, solve
from bat_core.config.schema import VerifyConfig
from bat_core.hooks.synthesizer import SynthesisRequest
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.model.task import Stratum
from bat_core.rollout.lab import Lab, LabSpec
from bat_core.verify.disclosure import disclosed, disclosing, kept


def rubric(count: int) -> Rubric:
    return Rubric(
        stage="A",
        items=tuple(RubricItem(id=f"A.{n}", criterion=f"item {n}?", verifier="check:x") for n in range(count)),
    )


@given(st.integers(1, 12), st.floats(0, 0.99), st.text(max_size=5))
def test_a_share_of_the_items_is_left_out_and_the_same_for_a_key(count: int, share: float, key: str) -> None:
    whole = rubric(count)
    left = kept(whole, share, key)
    assert len(left.items) == max(1, count - int(share * count)) and set(left.items) <= set(whole.items)
    assert left == kept(whole, share, key) and [i.id for i in left.items] == sorted((i.id for i in left.items), key=len)


def test_other_states_lose_other_items() -> None:
    assert len({kept(rubric(6), 0.5, str(key)).digest for key in range(12)}) > 3


def test_hidden_items_are_not_told() -> None:
    assert [item.id for item in disclosed(rubric(3), {"A.1"}).items] == ["A.0", "A.2"]
    assert disclosed(rubric(1), {"A.0"}) == rubric(1)
    contract = MedImagingDomain().contract()
    assert disclosing(contract, ()) is contract


@pytest.fixture(scope="module")
def task() -> Any:
    request = SynthesisRequest(track="segmentation", stratum=Stratum.SUCCESS, stage=None, count=1, seed=3)
    return next(iter(MedImagingDomain().synthesizer().synthesize(request)))


def lab(folder: Path, **verify: Any) -> Lab:
    values = VerifyConfig(**verify)
    return Lab(LabSpec(domain="medimaging", store=str(folder), provider="bubblewrap", key="ab" * 32, verify=values))


def test_prompts_hold_the_criteria_of_disclosed_items_only(tmp_path: Path, task: Any) -> None:
    with lab(tmp_path / "a") as plain, lab(tmp_path / "b", hidden=("S3.b",)) as probing:
        texts = []
        for one in (plain, probing):
            rubrics = rubrics_of(one, task)
            criteria = {item.id: item.criterion for part in rubrics for item in part.items}
            state = StageState(
                id="s", task=task, focus="S3", stratum=Stratum.SUCCESS, messages=(), rubrics=(rubrics[2],),
                snapshot=one.store.put_files({}),
            )  # fmt: skip
            texts.append("\n".join(m.content for m in one.harness.prompt(one.contract, state)))
            texts.append("\n".join(m.content for m in opening(one.contract, task, rubrics)))
        stage, whole, probed_stage, probed_whole = texts
        assert all(text in whole for text in criteria.values()) and criteria["S3.b"] in stage
        assert criteria["S3.b"] not in probed_stage + probed_whole and criteria["S3.a"] in probed_stage
        assert "S3.b" in [item.id for item in rubrics[2].items]


def test_dropped_items_leave_the_reward_and_a_whole_judgement_keeps_them(tmp_path: Path, task: Any) -> None:
    with lab(tmp_path, drop=0.5) as one:
        run = one.run(solve(one, task, one.domain.expert(task)))
        rubrics = rubrics_of(one, task)
        start = one.store.put_files(one.contract.workspace(task))
        state = StageState(
            id="s", task=task, focus=E2E, stratum=Stratum.SUCCESS, snapshot=start, messages=(), rubrics=rubrics
        )
        done = Rollout(
            state="s", final=run.final, receipts=run.receipts(len(run.steps)), messages=run.messages(len(run.steps))[2:]
        )
        some, again = (one.run(one.scorer.score(state, done)) for _ in range(2))
        all_of_it = one.run(one.scorer.score(state, done, whole=True))
    total = sum(len(part.items) for part in rubrics)
    assert some == again and some.value == all_of_it.value
    assert {stage.score for one in (some, all_of_it) for stage in one.stages} == {1.0}
    assert all_of_it.items == total and some.items == sum(len(part.items) - len(part.items) // 2 for part in rubrics)
