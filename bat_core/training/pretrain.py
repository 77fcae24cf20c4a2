"""Language-model training of a tiny base through the transformers Trainer, on rows in the order given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bat_core.config.schema import PolicyConfig
from bat_core.training.sft import IGNORED, Row

WARMUP = 20
WEIGHT_DECAY = 0.01


def run_pretraining(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Row],
    policy: PolicyConfig,
    scratch: Path,
    progress: Callable[[int, int, dict[str, Any]], None],
) -> None:
    """Train `model` in place, one batch after the other: the order of `rows` is the curriculum.

    Args:
        model: A causal LM.
        tokenizer: Its tokenizer.
        rows: `policy.steps` x `policy.batch` rows.
        policy: Steps, batch, learning rate.
        scratch: Folder for the trainer; nothing is kept there.
        progress: Called with (done, total, metrics).
    """
    from datasets import Dataset
    from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

    from bat_core.training.muon import MuonAndAdamW
    from bat_core.training.progress import quiet, reporting, unprinted

    quiet()
    arguments = TrainingArguments(
        output_dir=str(scratch),
        max_steps=policy.steps,
        per_device_train_batch_size=policy.batch,
        lr_scheduler_type="cosine",
        warmup_steps=WARMUP,
        train_sampling_strategy="sequential",
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        logging_steps=10,
        disable_tqdm=True,
        seed=0,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(list(rows)),
        data_collator=DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=IGNORED),
        optimizers=(MuonAndAdamW(model, policy.lr, WEIGHT_DECAY), None),
        callbacks=[reporting(progress)],
    )
    unprinted(trainer).train()
