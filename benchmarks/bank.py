"""States a second, peak memory, and whether time and memory grow in step with the number of tasks.

    python benchmarks/bank.py [--tasks 100 300] [--workers 1] [--domain medimaging] [--no-replay]

Builds a bank of each size in a folder of its own, in a process of its own, without trying cheats (their proofs are made
once a version; see `--cheats`), then reads it back, which verifies every digest, and restores every workspace in a
sandbox. Prints the slope between the sizes: 1 is linear, above 1 is worse.
"""

import argparse
import json
import math
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

from bat_core.bank.store import read
from bat_core.cli.options import configuration
from bat_core.evolve.directory import RunDirectory
from bat_core.evolve.generations import build, synthesized
from bat_core.evolve.settings import lab_spec
from bat_core.registry import load_domain
from bat_core.rollout.lab import Lab


def measure(domain: str, tasks: int, workers: int, cheats: bool, replay: bool, out: "multiprocessing.Queue") -> None:
    """Build one bank and say what it took."""
    words = [f"bank.tasks={tasks}", f"bank.workers={workers}", f"bank.cheats={str(cheats).lower()}"]
    config = configuration(domain, "cpu", None, words).config
    plugin = load_domain(domain)
    with tempfile.TemporaryDirectory() as folder, RunDirectory(Path(folder) / "run") as run:
        began = time.monotonic()
        wanted = synthesized(config, plugin, tasks)
        report, _ = build(config, run, plugin, wanted, lambda done, total: None)
        built = time.monotonic() - began
        states = read(run.bank).states
        lost = restored(config, run, states) if replay else None
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    out.put(
        {
            "tasks": tasks,
            "states": report.states,
            "seconds": built,
            "cpu": sum(one.ru_utime + one.ru_stime for one in usage),
            "memory": max(one.ru_maxrss for one in usage) / 1024,
            "distinct": report.distinct,
            "duplicates": report.duplicates,
            "rejected": report.rejected,
            "empty": len(report.missing),
            "lost": lost,
        }
    )


def restored(config: object, run: RunDirectory, states: list) -> int:
    """Restore every workspace in a sandbox; return how many came back as something else."""

    async def go(lab: Lab) -> int:
        pool, lost = await lab.pool(), 0
        for ref in {state.snapshot.root: state.snapshot for state in states}.values():
            sandbox = await pool.acquire(ref)
            lost += (await sandbox.snapshot()).root != ref.root
            await pool.release(sandbox)
        return lost

    with Lab(lab_spec(config, run)) as lab:
        return lab.run(go(lab))


def main() -> None:
    """Measure each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--domain", default="medimaging")
    parser.add_argument("--cheats", action="store_true")
    parser.add_argument("--no-replay", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    context, rows = multiprocessing.get_context("spawn"), []
    for tasks in asked.tasks:
        queue = context.Queue()
        arguments = (asked.domain, tasks, asked.workers, asked.cheats, not asked.no_replay, queue)
        process = context.Process(target=measure, args=arguments)
        process.start()
        rows.append(queue.get())
        process.join()
        if not asked.json:
            show(rows[-1])
    if asked.json:
        print(json.dumps(rows))
    elif len(rows) > 1:
        first, last = rows[0], rows[-1]
        for what in ("seconds", "cpu", "memory"):
            slope = math.log(last[what] / first[what]) / math.log(last["tasks"] / first["tasks"])
            print(f"slope of {what} from {first['tasks']} to {last['tasks']} tasks: {slope:.2f}")


def show(row: dict) -> None:
    """Print one size."""
    rate = row["states"] / row["seconds"]
    told = "not tried" if row["lost"] is None else f"{row['lost']} not the same"
    print(
        f"{row['tasks']} tasks: {row['states']} states in {row['seconds']:.1f} s, {rate:.1f} a second"
        f" ({row['cpu']:.1f} CPU s), {row['memory']:.0f} MB; {row['distinct']:.1%} of prompts distinct,"
        f" {row['duplicates']} near-copies, {row['rejected']} rejected, {row['empty']} empty cells; replay: {told}",
        flush=True,
    )


if __name__ == "__main__":
    main()
