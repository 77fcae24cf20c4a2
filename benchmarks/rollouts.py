"""Rollouts a second with the shipped tiny policy in real sandboxes: generation, tools, verification.

    python benchmarks/rollouts.py [--tasks 16] [--rollouts 2]

Prints one line a pass; the first pass opens the sandboxes, the later ones use the warm pool.
"""

import argparse
import tempfile
import time

from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.trajectory import opening, rubrics_of
from bat_core.config.load import preset_layer, resolve
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.model.task import Task
from bat_core.rollout.collect import Batch, Job, collect
from bat_core.rollout.engine import attach
from bat_core.rollout.lab import Lab, LabSpec, close_labs, lab_for
from bat_core.rollout.transformers_engine import TransformersEngine
from bat_core.training.checkpoint import load, refer

PASSES = 3


def start(lab: Lab, task: Task) -> StageState:
    """Return the E2E state of a task."""
    rubrics = rubrics_of(lab, task)
    snapshot = lab.store.put_files(lab.contract.workspace(task))
    messages = opening(lab.contract, task, rubrics)
    return StageState(
        id=task.id,
        task=task,
        focus=E2E,
        stratum=task.stratum,
        snapshot=snapshot,
        messages=messages,
        rubrics=rubrics,
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--rollouts", type=int, default=2)
    arguments = parser.parse_args()
    config = resolve([preset_layer("cpu")]).config
    with tempfile.TemporaryDirectory() as store:
        spec = LabSpec(domain="medimaging", store=store, rollout=config.rollout)
        lab = lab_for(spec)
        base = lab.domain.base()
        model, tokenizer = load(refer(base))
        attach("benchmark", TransformersEngine(model, tokenizer, config.rollout.temperature))
        tasks = make_tasks(lab.domain.synthesizer(), requests(lab.contract, arguments.tasks, 1))
        states = [start(lab, task) for task in tasks]
        for number in range(PASSES):
            jobs = [Job(s, k, 97 * i + k) for i, s in enumerate(states) for k in range(arguments.rollouts)]
            began = time.perf_counter()
            scored = collect(Batch(spec, "benchmark", jobs))
            seconds = time.perf_counter() - began
            calls = sum(len(one.episode.rollout.receipts) for one in scored)
            sampled = sum(one.episode.rollout.policy_tokens for one in scored)
            per_second = f"{len(jobs) / seconds:.1f} rollouts/s, {calls / seconds:.1f} calls/s, {sampled / seconds:.0f}"
            print(f"pass {number + 1} ({'cold' if not number else 'warm'}): {per_second} sampled tokens/s")
        close_labs()


if __name__ == "__main__":
    main()
