"""GRPO through TRL's GRPOTrainer with our own multi-turn rollouts in sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bat_core.config.schema import TrainConfig
from bat_core.hooks.trainer import TrainJob
from bat_core.model.base import digest_of
from bat_core.model.state import StageState
from bat_core.model.training import TrainStats
from bat_core.rollout.collect import Scored
from bat_core.training.progress import quiet, reporting, unprinted

Collect = Callable[[Sequence[tuple[StageState, int, int]]], list[Scored]]
"""Takes (state, k, seed) and returns the scored rollouts in order."""


@dataclass
class Group:
    """What became of a group: its rewards, None where a rollout was unscorable."""

    rewards: list[float | None]

    @property
    def scored(self) -> list[float]:
        """The rewards that count."""
        return [reward for reward in self.rewards if reward is not None]

    @property
    def usable(self) -> bool:
        """Whether at least two rollouts were scored."""
        return len(self.scored) >= 2

    @property
    def flat(self) -> bool:
        """Whether all scored rewards are equal: such a group says nothing."""
        return self.usable and max(self.scored) - min(self.scored) < 1e-9

    @property
    def teaches(self) -> bool:
        """Whether the group contributes to the loss, its KL term included."""
        return self.usable and not self.flat


@dataclass
class Tally:
    """Counts over a phase, and the mean reward of each step."""

    stats: TrainStats = field(default_factory=TrainStats)
    rewards: list[float] = field(default_factory=list)

    def add(self, scored: Sequence[Scored], groups: Sequence[Group]) -> None:
        """Count one step's rollouts and groups."""
        rewards = [reward for group in groups for reward in group.scored]
        if rewards:
            self.rewards.append(sum(rewards) / len(rewards))
        old = self.stats
        self.stats = TrainStats(
            rollouts=old.rollouts + len(scored),
            lost=old.lost + sum(one.episode.rollout.end == "lost" for one in scored),
            groups=old.groups + len(groups),
            dropped_groups=old.dropped_groups + sum(not group.usable for group in groups),
            flat_groups=old.flat_groups + sum(group.flat for group in groups),
            policy_tokens=old.policy_tokens + sum(one.episode.rollout.policy_tokens for one in scored),
            trained_tokens=old.trained_tokens + sum(one.episode.tokens.total for one in scored),
            steps=old.steps + 1,
        )


class RolloutFunction:
    """What TRL calls for rollouts: it hands over prompts, we know the rows behind them."""

    def __init__(self, job: TrainJob, config: TrainConfig, collect: Collect, pad: int) -> None:
        self._states = [state for batch in job.batches for state in batch]
        self._job = job
        self._k = config.rollouts
        self._collect = collect
        self._pad = pad
        self.tally = Tally()
        self.teaching: list[bool] = []

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Return ids, masks, log-probabilities and rewards of one generation batch, K rollouts a state."""
        rows = [row["state"] for row in trainer.rows]
        wanted = [(self._states[row], i % self._k, self._seed(row, i % self._k)) for i, row in enumerate(rows)]
        scored = self._collect(wanted)
        groups = [Group([one.reward.value for one in scored[i : i + self._k]]) for i in range(0, len(scored), self._k)]
        self.tally.add(scored, groups)
        self.teaching = [groups[i // self._k].teaches and one.reward.value is not None for i, one in enumerate(scored)]
        for (state, _, _), one in zip(wanted, scored, strict=True):
            self._job.listen(state, one.episode.rollout, one.reward)
        return self._columns(scored)

    def _seed(self, row: int, k: int) -> int:
        return int(digest_of([self._job.seed, row, k])[7:22], 16)

    def _columns(self, scored: Sequence[Scored]) -> dict[str, list[Any]]:
        """Return TRL's columns; a lost rollout becomes one masked padding token, which has no gradient.

        TRL pads prompts and completions apart, so that a batch of stage states (long history, short completion) and
        E2E states (the reverse) would be mostly padding. Where prompts differ in length, what is longer than the
        shortest goes to the completion, masked as observations are: the same sequence, the same loss, no padding left.
        """
        tokens = [one.episode.tokens for one in scored]
        shared = min(len(t.prompt) for t in tokens)
        columns: dict[str, list[Any]] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": []}
        for t in tokens:
            history = t.prompt[shared:]
            masked = len(history)
            columns["prompt_ids"].append(t.prompt[:shared])
            columns["completion_ids"].append([*history, *t.completion] or [self._pad])
            columns["logprobs"].append([0.0] * masked + t.logprobs or [0.0])
            columns["env_mask"].append([0] * masked + t.mask or [0])
        return {**columns, "score": [one.reward.value for one in scored]}


def run_grpo(
    model: Any, tokenizer: Any, job: TrainJob, config: TrainConfig, device: str, collect: Collect, scratch: Path
) -> tuple[Any, Tally, list[dict[str, float]]]:
    """Train on the job's batches and return (model, tally, TRL's log)."""
    quiet()
    import torch
    from datasets import Dataset
    from trl import GRPOTrainer

    class Trainer(GRPOTrainer):  # type: ignore[misc]
        """Keeps the rows for the rollout function, and silences groups that teach nothing."""

        rows: list[dict[str, Any]]

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            self.rows = inputs
            output: dict[str, Any] = super()._generate_and_score_completions(inputs)
            keep = torch.tensor(rollouts.teaching, device=output["tool_mask"].device).long()
            output["tool_mask"] = output["tool_mask"] * keep[:, None]
            return output

    rollouts = RolloutFunction(job, config, collect, tokenizer.pad_token_id)
    total = sum(len(batch) for batch in job.batches)
    rows = [{"prompt": [{"role": "user", "content": ""}], "state": i} for i in range(total)]

    def reward(prompts: Any, completions: Any, score: list[float | None], **_: Any) -> list[float | None]:
        return score

    trainer = Trainer(
        model=model,
        reward_funcs=reward,
        args=grpo_arguments(config, job, device, scratch),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        rollout_func=rollouts,
        callbacks=[reporting(lambda done, steps, metrics: job.progress("grpo", done, steps, metrics))],
        peft_config=lora(config),
    )
    unprinted(trainer).train()
    return trainer.accelerator.unwrap_model(trainer.model), rollouts.tally, trainer.state.log_history


def grpo_arguments(config: TrainConfig, job: TrainJob, device: str, scratch: Path) -> Any:
    """Return TRL's arguments: `iterations` optimiser steps on each generation batch of `groups` x K rollouts."""
    from trl import GRPOConfig

    batch = config.groups * config.rollouts
    return GRPOConfig(
        output_dir=str(scratch),
        max_steps=len(job.batches) * config.iterations,
        num_iterations=config.iterations,
        per_device_train_batch_size=config.micro_batch,
        gradient_accumulation_steps=batch // config.micro_batch,
        num_generations=config.rollouts,
        learning_rate=config.lr,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=config.grad_norm,
        beta=config.beta,
        epsilon=config.clip,
        loss_type=config.loss,
        scale_rewards=config.scale,
        temperature=float(job.settings["temperature"]),
        max_completion_length=int(job.settings["response_tokens"]),
        shuffle_dataset=False,
        seed=job.seed,
        use_cpu=device == "cpu",
        bf16=config.bf16,
        gradient_checkpointing=config.gradient_checkpointing,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )


def lora(config: TrainConfig) -> Any:
    """Return a LoRA configuration, or None to train all parameters."""
    if not config.lora_rank:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora_rank, lora_alpha=2 * config.lora_rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )
