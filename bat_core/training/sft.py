"""Supervised fine-tuning through TRL's SFTTrainer, on rows that carry their own labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bat_core.errors import TrainerError
from bat_core.model.training import Slice
from bat_core.rollout.chat import ChatFormat

IGNORED = -100


@dataclass(frozen=True)
class SftSettings:
    """Optimiser settings of one SFT phase."""

    steps: int
    batch: int
    micro_batch: int
    lr: float
    seed: int
    device: str = "cpu"
    bf16: bool = False
    gradient_checkpointing: bool = False
    warmup: int = 0
    schedule: str = "constant"


Row = dict[str, list[int]]


def slice_row(chat: ChatFormat, one: Slice, max_tokens: int) -> Row | None:
    """Return ids and labels of a slice: loss on the expert's action only. None if it does not fit; never clipped."""
    prompt, target = chat.prompt_ids(one.messages), chat.target_ids(one.target)
    if len(prompt) + len(target) > max_tokens:
        return None
    return {"input_ids": prompt + target, "labels": [IGNORED] * len(prompt) + target}


def run_sft(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Row],
    settings: SftSettings,
    scratch: Path,
    progress: Callable[[int, int, dict[str, Any]], None] = lambda done, total, metrics: None,
) -> list[dict[str, float]]:
    """Train `model` in place and return TRL's log.

    Raises:
        TrainerError: If there is nothing to train on.
    """
    if not rows:
        raise TrainerError("there is no SFT example that fits", remedy="raise coldstart.max_tokens or the bank's size")
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from bat_core.training.progress import quiet, reporting, unprinted

    quiet()
    arguments = SFTConfig(
        output_dir=str(scratch),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.micro_batch,
        gradient_accumulation_steps=max(1, settings.batch // settings.micro_batch),
        learning_rate=settings.lr,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup,
        weight_decay=0.01,
        adam_beta2=0.98,
        max_length=None,
        train_sampling_strategy="group_by_length",
        seed=settings.seed,
        use_cpu=settings.device == "cpu",
        bf16=settings.bf16,
        gradient_checkpointing=settings.gradient_checkpointing,
        report_to="none",
        save_strategy="no",
        logging_steps=10,
        disable_tqdm=True,
    )
    trainer = SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(list(rows)),
        processing_class=tokenizer,
        callbacks=[reporting(progress)],
    )
    unprinted(trainer).train()
    history: list[dict[str, float]] = trainer.state.log_history
    return history
