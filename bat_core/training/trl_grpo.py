"""The default trainer: SFT and GRPO of TRL, rollouts of ours."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bat_core.config.schema import ColdstartConfig, TrainConfig
from bat_core.executors import LocalExecutor
from bat_core.hooks.trainer import PolicyTrainer, TrainJob
from bat_core.model.base import JsonObject
from bat_core.model.state import StageState
from bat_core.model.training import Problem, Slice, TrainResult
from bat_core.rollout.collect import Batch, Job, Scored, collect
from bat_core.rollout.lab import LabSpec
from bat_core.training.kl import Divergence, divergence

COLLECT = f"{collect.__module__}:{collect.__name__}"
ENGINE = "trainer"


class TrlGrpo(PolicyTrainer):
    """Improves a causal language model on one machine.

    Settings of a job: `lab` (a LabSpec), `train`, `coldstart`, `device`, `threads`, `temperature`, `response_tokens`.
    """

    def check(self, settings: JsonObject) -> Sequence[Problem]:
        """Return settings that can't be honoured; imports nothing heavy."""
        train = TrainConfig.model_validate(settings["train"])
        problems = []
        if train.groups * train.rollouts % train.micro_batch:
            message = f"{train.groups} groups x {train.rollouts} rollouts is not a multiple of {train.micro_batch}"
            problems.append(Problem(key="train.micro_batch", message=message, remedy="choose a divisor"))
        if settings["device"] == "cpu" and train.bf16:
            problems.append(
                Problem(key="train.bf16", message="bf16 training on the CPU", remedy="set train.bf16=false")
            )
        if train.lora_rank and train.beta == 0:
            problems.append(
                Problem(key="train.beta", message="LoRA without a KL term", remedy="set train.beta above 0")
            )
        return problems

    def coldstart(self, job: TrainJob, slices: Sequence[Slice]) -> TrainResult:
        """Fine-tune on a seeded choice of slices; validation is split off by trajectory."""
        from bat_core.rollout.chat import ChatFormat
        from bat_core.training.checkpoint import load, save
        from bat_core.training.progress import all_finite
        from bat_core.training.sft import SftSettings, run_sft, slice_row

        config = ColdstartConfig.model_validate(job.settings["coldstart"])
        device = str(job.settings["device"])
        _threads(job)
        model, tokenizer = load(job.policy, device)
        chat = ChatFormat(tokenizer, job.tools)
        chosen = choose_slices(slices, config, job.seed)
        rows = [row for one in chosen if (row := slice_row(chat, one, config.max_tokens)) is not None]
        settings = SftSettings(
            steps=config.steps,
            batch=config.batch,
            micro_batch=config.micro_batch,
            lr=config.lr,
            seed=job.seed,
            device=device,
            bf16=device != "cpu",
            gradient_checkpointing=device != "cpu",
        )
        scratch = _scratch(job)
        log: list[dict[str, float]] = []
        if config.steps:
            log = run_sft(model, tokenizer, rows, settings, scratch, lambda d, t, m: job.progress("sft", d, t, m))
        shutil.rmtree(scratch, ignore_errors=True)
        return TrainResult(policy=save(model, tokenizer, job.output), finite=all_finite(log))

    def train(self, job: TrainJob) -> TrainResult:
        """GRPO on the job's batches, then KL to theta* on the probe states."""
        from bat_core.training.checkpoint import load, save
        from bat_core.training.grpo import run_grpo
        from bat_core.training.progress import all_finite

        config = TrainConfig.model_validate(job.settings["train"])
        device = str(job.settings["device"])
        _threads(job)
        model, tokenizer = load(job.policy, device, bf16=config.bf16)
        rollouts = _Rollouts(job, model, tokenizer)
        scratch = _scratch(job)
        model, tally, log = run_grpo(model, tokenizer, job, config, device, rollouts, scratch)
        shutil.rmtree(scratch, ignore_errors=True)
        kl = self._kl(job, config, model, rollouts, device)
        return TrainResult(
            policy=save(_merged(model), tokenizer, job.output),
            finite=all_finite(log) and kl.finite,
            reward_first=tally.rewards[0] if tally.rewards else None,
            reward_mean=sum(tally.rewards) / len(tally.rewards) if tally.rewards else None,
            kl=kl.exact if kl.finite else None,
            kl_k3=kl.k3 if kl.finite else None,
            stats=tally.stats,
        )

    def _kl(self, job: TrainJob, config: TrainConfig, model: Any, rollouts: _Rollouts, device: str) -> Divergence:
        from bat_core.training.checkpoint import load

        if job.reference is None or not job.probe:
            return Divergence(None, None)
        rollouts.engine.model = model
        scored = rollouts([(state, 0, 1_000_003 * (n + 1)) for n, state in enumerate(job.probe)])
        reference, _ = load(job.reference, device, bf16=config.bf16)
        samples = [one.episode.tokens for one in scored]
        return divergence(model, reference, samples, float(job.settings["temperature"]))


class _Rollouts:
    """Collects rollouts with the model in training, through the executor."""

    def __init__(self, job: TrainJob, model: Any, tokenizer: Any) -> None:
        from bat_core.rollout.engine import attach
        from bat_core.rollout.transformers_engine import TransformersEngine

        self._lab = LabSpec.model_validate(job.settings["lab"])
        self.engine = TransformersEngine(model, tokenizer, float(job.settings["temperature"]))
        attach(ENGINE, self.engine)
        self._executor = LocalExecutor(0)

    def __call__(self, wanted: Sequence[tuple[StageState, int, int]]) -> list[Scored]:
        batch = Batch(self._lab, ENGINE, [Job(state, k, seed) for state, k, seed in wanted])
        return [one for part in self._executor.map(COLLECT, [batch]) for one in part]


def choose_slices(slices: Sequence[Slice], config: ColdstartConfig, seed: int) -> list[Slice]:
    """Return the training slices: a seeded choice, trajectories of the validation split left out."""
    rng = random.Random(seed)
    trajectories = sorted({one.trajectory for one in slices})
    rng.shuffle(trajectories)
    held = set(trajectories[: round(config.validation * len(trajectories))])
    training = [one for one in slices if one.trajectory not in held]
    return rng.sample(training, min(config.slices, len(training)))


def _merged(model: Any) -> Any:
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model


def _scratch(job: TrainJob) -> Path:
    return job.output.with_name(job.output.name + ".scratch")


def _threads(job: TrainJob) -> None:
    import torch

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(int(job.settings["threads"]))
