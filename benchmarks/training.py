"""A training step of ours against bare GRPOTrainer, on the same model and the same tokens, alternating in one run.

    python benchmarks/training.py [--steps 4] [--repeats 3]

Rollouts are made up beforehand (the lengths of a real batch), so that only the trainer is timed.
"""

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOTrainer

from bat_core.config.load import preset_layer, resolve
from bat_core.config.schema import TrainConfig
from bat_core.hooks.trainer import TrainJob
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.state import StageState
from bat_core.model.training import PolicyRef
from bat_core.registry import load_domain
from bat_core.rollout.collect import Scored
from bat_core.rollout.episode import Episode, Tokens
from bat_core.training.checkpoint import load, refer
from bat_core.training.grpo import RolloutFunction, grpo_arguments, run_grpo
from bat_core.training.progress import quiet, unprinted

PROMPTS, COMPLETIONS = (75, 330), (40, 300)


def made_up(count: int, vocabulary: int, seed: int) -> list[Scored]:
    """Return rollouts of random tokens; every second of them is an observation."""
    rng = random.Random(seed)
    scored = []
    for _ in range(count):
        tokens = Tokens([rng.randrange(3, vocabulary) for _ in range(rng.randint(*PROMPTS))])
        for turn in range(rng.randint(*COMPLETIONS) // 10):
            ids = [rng.randrange(3, vocabulary) for _ in range(10)]
            tokens.add(ids, None if turn % 2 else [-1.0] * 10)
        scored.append(Scored(Episode(Rollout(state="s"), tokens), Reward(value=rng.random())))
    return scored


class Clock(TrainerCallback):
    """Seconds of each optimiser step, generation included."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(time.perf_counter() - self.began)


def bare(model: Any, tokenizer: Any, job: TrainJob, config: Any, collect: Any, scratch: Path, clock: Clock) -> None:
    """Train with TRL alone, on the columns that ours would hand over."""
    function = RolloutFunction(job, config, collect, tokenizer.pad_token_id)
    rows = [{"prompt": [{"role": "user", "content": ""}], "state": i} for i in range(len(job.batches) * config.groups)]
    wanted = [(None, 0, 0)] * (config.groups * config.rollouts)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda prompts, completions, score, **_: score,
        args=grpo_arguments(config, job, "cpu", scratch),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        rollout_func=lambda prompts, trainer: function._columns(collect(wanted)),
        callbacks=[clock],
    )
    unprinted(trainer).train()


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    quiet()
    torch.set_num_threads(1)
    config = resolve([preset_layer("cpu")]).config
    policy = refer(load_domain("medimaging").base())
    settings = {"temperature": 1.0, "response_tokens": config.rollout.response_tokens}
    state = StageState.model_construct(id="s")
    ours, theirs = Clock(), Clock()
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(arguments.repeats):
            batches = [[state] * config.train.groups] * arguments.steps
            job = TrainJob(policy, Path(folder), settings, repeat, batches=batches, progress=ticking(ours))
            _pair(policy, job, config.train, theirs, Path(folder))
    mine, plain = statistics.median(ours.seconds), statistics.median(theirs.seconds)
    print(f"ours {mine:.3f} s a step, bare GRPOTrainer {plain:.3f} s, ratio {mine / plain:.3f}")


def _pair(policy: PolicyRef, job: TrainJob, config: TrainConfig, theirs: Clock, folder: Path) -> None:
    """Train the same steps by ours, then by TRL alone."""
    model, tokenizer = load(policy)
    scored = made_up(config.groups * config.rollouts, len(tokenizer), job.seed)
    run_grpo(model, tokenizer, job, config, "cpu", lambda _: scored, folder / "ours")
    model, tokenizer = load(policy)
    bare(model, tokenizer, job, config, lambda _: scored, folder / "bare", theirs)


def ticking(clock: Clock) -> Any:
    """Return a progress callback that notes how long each step took; the first one only starts the clock."""
    last: list[float] = []

    def progress(phase: str, done: int, total: int, metrics: dict[str, Any]) -> None:
        if metrics:
            return
        now = time.perf_counter()
        if done > 1:
            clock.seconds.append(now - last[-1])
        last.append(now)

    return progress


if __name__ == "__main__":
    main()
