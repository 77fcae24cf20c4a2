"""The default trainer on a very small policy, with a real bank, real sandboxes and real TRL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bat_core.bank.store import Bank, read
from bat_core.config.schema import ColdstartConfig, Config
from bat_core.errors import TrainerError
from bat_core.hooks.trainer import TrainJob
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.model.training import PolicyRef, TrainResult
from bat_core.rollout.collect import Scored
from bat_core.rollout.lab import LabSpec, close_labs, lab_for
from bat_core.training import trl_grpo
from bat_core.training.checkpoint import load
from bat_core.training.trl_grpo import TrlGrpo, choose_slices
from bat_core.verify.scorer import Scorer

GROUPS, K = 4, 2
SMALL = {"groups": GROUPS, "rollouts": K, "micro_batch": GROUPS * K, "steps": 1, "lr": 1e-2, "beta": 0.0}
PLAIN = {"bf16": False, "gradient_checkpointing": False, "probe": 2}


@pytest.fixture(scope="module")
def run(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the small run: rollouts leave workspaces in its store."""
    yield Path(shutil.copytree(small_run, tmp_path_factory.mktemp("copy") / "run"))
    close_labs()


@pytest.fixture(scope="module")
def bank(run: Path) -> Bank:
    return read(run / "bank")


@pytest.fixture
def settings(run: Path, small_config: Config) -> dict[str, Any]:
    store = str(run / "bank" / "snapshots")
    key = (run / "key").read_bytes().hex()
    lab = LabSpec(domain="medimaging", store=store, provider="bubblewrap", key=key, rollout=small_config.rollout)
    return {
        "lab": lab.model_dump(mode="json"),
        "train": SMALL | PLAIN,
        "coldstart": {"steps": 2, "batch": 4, "micro_batch": 4, "slices": 16, "lr": 1e-2},
        "device": "cpu",
        "threads": 1,
        "temperature": 1.0,
        "response_tokens": 4096,
    }


def pick(bank: Bank) -> list[StageState]:
    """One long and one short history, a recovery and an E2E state."""
    by_focus = {state.focus: state for state in bank.states}
    return [by_focus[focus] for focus in ("S1", "S3", "S5", E2E)]


def job(base: PolicyRef, output: Path, settings: dict[str, Any], bank: Bank, **values: Any) -> TrainJob:
    states = pick(bank)
    plain: dict[str, Any] = {"reference": base, "probe": states[:2], "batches": [states]}
    return TrainJob(base, output, settings, seed=7, **(plain | values))


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that knows nothing earns nothing; here its rollouts are told apart, so that there is a gradient."""
    plain = Scorer.score

    async def score(self: Scorer, state: StageState, rollout: Rollout) -> Reward:
        reward = await plain(self, state, rollout)
        return reward.model_copy(update={"value": float(rollout.index)})

    monkeypatch.setattr(Scorer, "score", score)


def weights(policy: PolicyRef) -> dict[str, Any]:
    return dict(load(policy)[0].state_dict())


def moved(one: PolicyRef, other: PolicyRef) -> float:
    before, after = weights(one), weights(other)
    assert before.keys() == after.keys()
    return max(float((after[name] - value).abs().max()) for name, value in before.items())


@pytest.mark.parametrize(
    ("train", "device", "key"),
    [
        ({"groups": 4, "rollouts": 3, "micro_batch": 5, "bf16": False}, "cpu", "train.micro_batch"),
        ({"bf16": True}, "cpu", "train.bf16"),
        ({"lora_rank": 4, "beta": 0.0}, "cuda", "train.beta"),
    ],
)
def test_what_cannot_be_honoured_is_said_beforehand(train: dict[str, Any], device: str, key: str) -> None:
    (problem,) = TrlGrpo().check({"train": train, "device": device})
    assert problem.key == key and problem.message and problem.remedy


def test_what_can_be_honoured_is_no_problem(settings: dict[str, Any]) -> None:
    assert TrlGrpo().check(settings) == []
    assert TrlGrpo().check({"train": {"lora_rank": 4, "beta": 0.01}, "device": "cuda"}) == []


def test_validation_is_split_off_by_trajectory(bank: Bank) -> None:
    config = ColdstartConfig(slices=10_000, validation=0.34)
    chosen = choose_slices(bank.slices, config, 1)
    everyone = {one.trajectory for one in bank.slices}
    assert len(everyone - {one.trajectory for one in chosen}) == round(0.34 * len(everyone)) > 0
    assert len({one.id for one in chosen}) == len(chosen)
    few = choose_slices(bank.slices, ColdstartConfig(slices=5), 1)
    assert len(few) == 5 and few == choose_slices(bank.slices, ColdstartConfig(slices=5), 1)
    assert few != choose_slices(bank.slices, ColdstartConfig(slices=5), 2)


def test_a_cold_start_is_the_same_for_the_same_seed(
    tiny_base: PolicyRef, settings: dict[str, Any], bank: Bank, tmp_path: Path
) -> None:
    steps: list[tuple[int, int]] = []
    told = lambda phase, done, total, metrics: steps.append((done, total))  # noqa: E731
    one = TrlGrpo().coldstart(job(tiny_base, tmp_path / "a", settings, bank, progress=told), bank.slices)
    other = TrlGrpo().coldstart(job(tiny_base, tmp_path / "b", settings, bank), bank.slices)
    assert one.finite and one.policy.digest == other.policy.digest != tiny_base.digest
    assert set(steps) == {(1, 2), (2, 2)}
    assert moved(tiny_base, one.policy) > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"], "no scratch stays"


def test_a_cold_start_of_no_steps_is_the_base_itself(
    tiny_base: PolicyRef, settings: dict[str, Any], bank: Bank, tmp_path: Path
) -> None:
    still = settings | {"coldstart": {"steps": 0}}
    result = TrlGrpo().coldstart(job(tiny_base, tmp_path / "a", still, bank), bank.slices)
    assert result.finite and moved(tiny_base, result.policy) == 0.0


def test_a_cold_start_without_an_example_that_fits_says_so(
    tiny_base: PolicyRef, settings: dict[str, Any], bank: Bank, tmp_path: Path
) -> None:
    narrow = settings | {"coldstart": {"max_tokens": 16, "steps": 1}}
    with pytest.raises(TrainerError, match=r"raise coldstart\.max_tokens"):
        TrlGrpo().coldstart(job(tiny_base, tmp_path / "a", narrow, bank), bank.slices)


def test_a_step_on_rollouts_that_are_all_worth_the_same_changes_nothing(
    tiny_base: PolicyRef, settings: dict[str, Any], bank: Bank, tmp_path: Path
) -> None:
    heard: list[tuple[str, int]] = []
    listen = lambda state, rollout, reward: heard.append((state.id, rollout.index))  # noqa: E731
    result = TrlGrpo().train(job(tiny_base, tmp_path / "a", settings, bank, listen=listen))
    stats = result.stats
    assert heard == [(state.id, k) for state in pick(bank) for k in range(K)]
    assert (stats.rollouts, stats.groups, stats.steps, stats.lost, stats.dropped_groups) == (8, GROUPS, 1, 0, 0)
    assert stats.flat_groups == GROUPS and (result.reward_first, result.reward_mean) == (0.0, 0.0)
    assert 0 < stats.policy_tokens < stats.trained_tokens
    assert result.finite and moved(tiny_base, result.policy) == 0.0
    assert result.kl == pytest.approx(0.0, abs=1e-6) and result.kl_k3 == pytest.approx(0.0, abs=1e-6)


def test_a_step_on_rollouts_that_differ_teaches_and_its_kl_is_measured(
    tiny_base: PolicyRef, settings: dict[str, Any], bank: Bank, tmp_path: Path, graded: None
) -> None:
    metrics: list[dict[str, Any]] = []
    told = lambda phase, done, total, more: metrics.append(more)  # noqa: E731
    results = [TrlGrpo().train(job(tiny_base, tmp_path / n, settings, bank, progress=told)) for n in "ab"]
    first, again = results
    assert first.finite and (first.reward_first, first.stats.flat_groups) == (0.5, 0)
    assert moved(tiny_base, first.policy) > 1e-3 and first.kl is not None and first.kl > 1e-4
    assert first == again.model_copy(update={"policy": first.policy}), "same job, same result"
    assert first.policy.digest == again.policy.digest
    assert any("loss" in more for more in metrics)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_adapters_are_merged_into_what_is_saved(
    tiny_base: PolicyRef, settings: dict[str, Any], bank: Bank, tmp_path: Path, graded: None
) -> None:
    adapted = settings | {"train": settings["train"] | {"lora_rank": 4, "beta": 0.01}}
    result = TrlGrpo().train(job(tiny_base, tmp_path / "a", adapted, bank))
    assert not (tmp_path / "a" / "adapter_config.json").exists()
    assert result.finite and moved(tiny_base, result.policy) > 0
    assert result.kl is not None and result.kl > 0


def test_no_probe_no_kl_and_null_is_not_zero(
    tiny_base: PolicyRef, settings: dict[str, Any], bank: Bank, tmp_path: Path
) -> None:
    result = TrlGrpo().train(job(tiny_base, tmp_path / "a", settings, bank, probe=(), batches=[pick(bank)]))
    assert (result.kl, result.kl_k3, result.finite) == (None, None, True)


def log_probabilities(model: Any, prompt: list[int], completion: list[int]) -> list[float]:
    """What a plain forward pass over one unpadded sequence gives for each token of the completion."""
    import torch

    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + completion]), use_cache=False).logits[0].float()
    table = torch.log_softmax(logits, -1)
    return [float(table[len(prompt) + n - 1, token]) for n, token in enumerate(completion)]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What TRL computed log-probabilities of, and the rollouts they belong to."""
    import trl

    seen: dict[str, list[Any]] = {"scored": [], "computed": []}
    plain = trl.GRPOTrainer._get_per_token_logps_and_entropies
    collect = trl_grpo._Rollouts.__call__

    def compute(self: Any, model: Any, ids: Any, attention: Any, keep: int, *more: Any, **words: Any) -> Any:
        found = plain(self, model, ids, attention, keep, *more, **words)
        seen["computed"].append((ids.clone(), attention.clone(), keep, found[0].detach().clone()))
        return found

    def collected(self: Any, wanted: Any) -> list[Scored]:
        scored = collect(self, wanted)
        seen["scored"] += scored
        return scored

    monkeypatch.setattr(trl.GRPOTrainer, "_get_per_token_logps_and_entropies", compute)
    monkeypatch.setattr(trl_grpo._Rollouts, "__call__", collected)
    return seen


def test_history_that_moved_into_the_completion_changes_no_log_probability(
    tiny_base: PolicyRef,
    settings: dict[str, Any],
    bank: Bank,
    tmp_path: Path,
    graded: None,
    watched: dict[str, list[Any]],
) -> None:
    result: TrainResult = TrlGrpo().train(job(tiny_base, tmp_path / "a", settings, bank, probe=()))
    assert result.finite
    model, _ = load(tiny_base)
    ids, attention, keep, found = watched["computed"][0]
    scored = watched["scored"][: GROUPS * K]
    lengths = [len(one.episode.tokens.prompt) for one in scored]
    assert len(set(lengths)) > 2 and ids.shape[1] - keep == min(lengths), "padding is gone"
    for one in scored:
        tokens = one.episode.tokens
        whole = tokens.prompt + tokens.completion
        row = next(n for n in range(len(ids)) if ids[n][attention[n].bool()].tolist() == whole)
        history = len(tokens.prompt) - min(lengths)
        mine = found[row, history : history + len(tokens.completion)].tolist()
        plain = log_probabilities(model, tokens.prompt, tokens.completion)
        assert mine == pytest.approx(plain, abs=1e-5)
        sampled = [n for n, own in enumerate(tokens.mask) if own]
        assert [tokens.logprobs[n] for n in sampled] == pytest.approx([plain[n] for n in sampled], abs=1e-4)


def test_a_long_history_is_not_cut_by_the_limit_on_answers(
    tiny_base: PolicyRef,
    settings: dict[str, Any],
    bank: Bank,
    tmp_path: Path,
    graded: None,
    watched: dict[str, list[Any]],
) -> None:
    TrlGrpo().train(job(tiny_base, tmp_path / "a", settings | {"response_tokens": 48}, bank, probe=()))
    _, attention, *_ = watched["computed"][0]
    whole = sorted(one.episode.tokens.total for one in watched["scored"][: GROUPS * K])
    assert sorted(attention.sum(1).tolist()) == whole and max(whole) > 48 + min(whole)


def test_rollouts_are_made_in_the_lab_of_the_job(settings: dict[str, Any]) -> None:
    assert lab_for(LabSpec.model_validate(settings["lab"])).provider == "bubblewrap"
