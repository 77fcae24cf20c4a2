from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.config.schema import TrainConfig
from bat_core.hooks.trainer import TrainJob
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.model.training import PolicyRef
from bat_core.rollout.collect import Scored
from bat_core.rollout.episode import Episode, Tokens
from bat_core.training.checkpoint import load, save
from bat_core.training.grpo import Group, RolloutFunction, Tally, run_grpo
from bat_core.training.progress import all_finite

D = "sha256:" + "0" * 64
REWARDS = st.lists(st.none() | st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=6)


def state(number: int) -> StageState:
    return StageState(
        id=f"s{number}",
        task=Task(id="t", domain="d", track="x", seed=0),
        focus="A",
        stratum=Stratum.SUCCESS,
        snapshot=SnapshotRef(root=D),
        messages=(),
        rubrics=(Rubric(stage="A", items=(RubricItem(id="A.a", criterion="?", verifier="check:x"),)),),
    )


def scored(name: str, k: int, reward: float | None, seed: int = 0) -> Scored:
    rng = random.Random(seed)
    tokens = Tokens([5, 6, 7])
    if reward is not None:
        for _ in range(2):
            mine = [rng.randrange(3, 300) for _ in range(rng.randrange(1, 5))]
            tokens.add(mine, [-5.0] * len(mine))
            tokens.add([8, 9])
    end: Any = "finished" if reward is not None else "lost"
    rollout = Rollout(state=name, index=k, end=end, policy_tokens=sum(tokens.mask))
    return Scored(Episode(rollout, tokens), Reward(value=reward, reason="" if reward is not None else "lost"))


def job(tmp_path: Path, batches: Sequence[Sequence[StageState]] = (), **values: Any) -> TrainJob:
    settings = {"temperature": 1.0, "response_tokens": 64}
    return TrainJob(PolicyRef(path="p", digest=D), tmp_path / "out", settings, seed=1, batches=batches, **values)


@given(REWARDS)
def test_a_group_teaches_only_where_its_scored_rewards_differ(rewards: list[float | None]) -> None:
    group = Group(rewards)
    known = [reward for reward in rewards if reward is not None]
    assert group.scored == known
    assert group.usable == (len(known) >= 2)
    assert group.flat == (len(known) >= 2 and len(set(known)) == 1)
    assert group.teaches == (len(set(known)) > 1)


@given(st.lists(REWARDS, min_size=1, max_size=4))
def test_a_tally_counts_and_null_enters_no_mean(groups: list[list[float | None]]) -> None:
    tally = Tally()
    for step in range(2):
        rows = [scored("s", k, reward, step) for group in groups for k, reward in enumerate(group)]
        tally.add(rows, [Group(group) for group in groups])
    known = [reward for group in groups for reward in group if reward is not None]
    assert tally.rewards == ([pytest.approx(statistics.fmean(known))] * 2 if known else [])
    stats = tally.stats
    everything = sum(map(len, groups))
    assert (stats.rollouts, stats.lost, stats.steps) == (2 * everything, 2 * (everything - len(known)), 2)
    assert stats.groups == 2 * len(groups)
    assert stats.dropped_groups == 2 * sum(sum(r is not None for r in group) < 2 for group in groups)
    assert stats.policy_tokens == sum(sum(row.episode.tokens.mask) for row in rows) * 2 or groups


def test_trl_gets_whole_groups_with_masks_of_equal_length(tmp_path: Path) -> None:
    states = [state(n) for n in range(4)]
    rewards: dict[int, list[float | None]] = {0: [1.0, 0.0], 1: [0.5, 0.5], 2: [None, 1.0], 3: [None, None]}
    asked: list[tuple[str, int, int]] = []
    heard: list[float | None] = []

    def collect(wanted: Sequence[tuple[StageState, int, int]]) -> list[Scored]:
        asked.extend((one.id, k, seed) for one, k, seed in wanted)
        return [scored(one.id, k, rewards[int(one.id[1:])][k], seed) for one, k, seed in wanted]

    one = job(tmp_path, [states[:2], states[2:]], listen=lambda s, rollout, reward: heard.append(reward.value))
    function = RolloutFunction(one, TrainConfig(rollouts=2), collect, pad=0)
    rows = [{"state": row} for row in range(4) for _ in range(2)]
    columns = function([None] * 8, SimpleNamespace(rows=rows))
    assert [(name, k) for name, k, _ in asked] == [(f"s{row}", k) for row in range(4) for k in range(2)]
    assert len({seed for *_, seed in asked}) == 8
    assert function.teaching == [True, True, False, False, False, False, False, False]
    assert columns["score"] == heard == [1.0, 0.0, 0.5, 0.5, None, 1.0, None, None]
    for ids, mask, logprobs in zip(columns["completion_ids"], columns["env_mask"], columns["logprobs"], strict=True):
        assert len(ids) == len(mask) == len(logprobs) >= 1
    assert (columns["completion_ids"][4], columns["env_mask"][4], columns["logprobs"][4]) == ([0], [0], [0.0])
    before = [seed for *_, seed in asked]
    function([None] * 8, SimpleNamespace(rows=rows))
    assert [seed for *_, seed in asked[8:]] == before, "the same job asks for the same tokens"


def plain_advantages(groups: list[list[float | None]], scale: str) -> list[float]:
    """A = r - mean, or (r - mean) / (std + eps), over the scored members of a group; 0 where there is no score."""
    found = []
    for group in groups:
        known = [reward for reward in group if reward is not None]
        mean = sum(known) / len(known) if known else 0.0
        spread = math.sqrt(sum((r - mean) ** 2 for r in known) / (len(known) - 1)) if len(known) > 1 else 0.0
        for reward in group:
            advantage = 0.0 if reward is None else reward - mean
            found.append(advantage / (spread + 1e-4) if scale == "group" and spread else advantage)
    return found


GROUPS: list[list[float | None]] = [
    [1.0, 0.0, 0.5, 0.25],
    [0.5, 0.5, 0.5, 0.5],
    [1.0, None, 0.0, None],
    [None, None, None, 1.0],
]


def train(
    model: Any,
    tokenizer: Any,
    tmp_path: Path,
    groups: list[list[float | None]],
    monkeypatch: pytest.MonkeyPatch,
    **config: Any,
) -> tuple[list[Any], dict[str, Any], list[dict[str, float]], Any]:
    """One step of real TRL on given rewards; return what it computed, the change of the weights, log and tally."""
    import trl

    outputs: list[Any] = []

    class Recording(trl.GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            outputs.append(output)
            return output

    monkeypatch.setattr(trl, "GRPOTrainer", Recording)
    states = [state(n) for n in range(len(groups))]
    settings = TrainConfig.model_validate(
        {"groups": len(groups), "rollouts": 4, "micro_batch": 4 * len(groups), "steps": 1, "lr": 1e-2, "beta": 0.1,
         "bf16": False, "gradient_checkpointing": False} | config
    )  # fmt: skip

    def collect(wanted: Sequence[tuple[StageState, int, int]]) -> list[Scored]:
        return [scored(one.id, k, groups[int(one.id[1:])][k], seed) for one, k, seed in wanted]

    model, _ = load(save(model, tokenizer, tmp_path / "policy"))  # TRL reads its reference from the same folder
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trained, tally, log = run_grpo(
        model, tokenizer, job(tmp_path, [states]), settings, "cpu", collect, tmp_path / "scratch"
    )
    change = {name: float((value - before[name]).abs().max()) for name, value in trained.state_dict().items()}
    return outputs, change, log, tally


@pytest.mark.parametrize("scale", ["none", "group"])
def test_advantages_are_those_of_the_plain_formula(
    model: Any, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scale: str
) -> None:
    (output,), change, log, tally = train(model, tokenizer, tmp_path, GROUPS, monkeypatch, scale=scale)
    expected = plain_advantages(GROUPS, scale)
    teaching = [n for n, mask in enumerate(output["tool_mask"].sum(1).tolist()) if mask > 0]
    assert teaching == [0, 1, 2, 3, 8, 10], "flat groups, nulls and lonely rewards have no token in the loss"
    found = output["advantages"].flatten().tolist()
    assert [found[n] for n in teaching] == pytest.approx([expected[n] for n in teaching], abs=1e-3)
    assert max(change.values()) > 0 and all_finite(log)
    assert (tally.stats.dropped_groups, tally.stats.flat_groups, tally.stats.lost) == (1, 1, 5)


def test_a_batch_can_be_used_for_several_steps(
    model: Any, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, further, log, tally = train(model, tokenizer, tmp_path, GROUPS, monkeypatch, iterations=3)
    assert len(outputs) == 1 and tally.stats.rollouts == 4 * len(GROUPS), "rollouts are collected once"
    steps = [row for row in log if "loss" in row]
    assert [row["step"] for row in steps] == [1, 2, 3]
    assert steps[0]["clip_ratio/region_mean"] == 0.0 < steps[2]["clip_ratio/region_mean"], "later steps are clipped"
    assert max(further.values()) > 0 and all_finite(log)


def test_groups_that_say_nothing_leave_the_weights_alone_kl_term_included(
    model: Any, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat: list[list[float | None]] = [[0.5] * 4, [None, None, None, 1.0]] * 2
    _, change, _, _ = train(model, tokenizer, tmp_path, flat, monkeypatch, beta=0.5)
    assert max(change.values()) == 0.0


def test_a_step_that_was_lost_as_a_whole_is_no_broken_metric(
    model: Any, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, change, log, tally = train(model, tokenizer, tmp_path, [[None] * 4] * 4, monkeypatch)
    assert max(change.values()) == 0.0 and tally.rewards == []
    assert all_finite(log), "our own failure is no reason to roll a policy back"


def test_weights_that_are_not_numbers_show_in_the_log(
    model: Any, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    with torch.no_grad():
        model.lm_head.weight[40] = math.nan
    _, _, log, _ = train(model, tokenizer, tmp_path, [[1.0, 0.0, 0.5, 0.25]] * 4, monkeypatch)
    assert not all_finite(log)
