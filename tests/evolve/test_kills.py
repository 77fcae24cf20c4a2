"""Kills in every phase, and inside steps and rollouts: nothing changes but the time it takes."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.model.training import PolicyRef


def family(pid: int) -> dict[int, str]:
    """Return every living descendant of a process, with the time it began (numbers are used again)."""
    parents: dict[int, list[int]] = {}
    began: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := stat(int(folder.name))):
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
            began[int(folder.name)] = fields[19]
    found: dict[int, str] = {}
    left = [pid]
    while left:
        for child in parents.get(left.pop(), []):
            found[child] = began[child]
            left.append(child)
    return found


def stat(pid: int) -> list[str]:
    """Return the fields of a process behind its name; none if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [] if fields[0] in "ZX" else fields


def survivors(pids: dict[int, str]) -> list[int]:
    return [pid for pid, began in pids.items() if (fields := stat(pid)) and fields[19] == began]


def kill_in(small: Any, base: PolicyRef, run: Path, sign: Callable[[], bool]) -> None:
    """Run until the sign is seen, kill with SIGKILL, and see everything go."""
    with subprocess.Popen(
        small.command(base, run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=small.environment(run.parent)
    ) as process:
        assert process.stderr is not None
        try:
            deadline = time.monotonic() + small.PATIENCE
            while not sign():
                assert process.poll() is None, process.stderr.read().decode()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            children = family(process.pid)
            process.send_signal(signal.SIGKILL)
        finally:
            process.kill()
    deadline = time.monotonic() + 20
    while (left := survivors(children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == [], [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]


def signs(small: Any, run: Path) -> dict[str, Callable[[], bool]]:
    """How a run looks in the middle of each phase."""
    return {
        "bank": lambda: any((run / "bank" / "parts").glob("*.json")),
        "coldstart": lambda: "bank" in small.journal(run),
        "train": lambda: (
            (run / "rounds" / "01" / "mixture.json").exists() and any((run / "rounds" / "01").glob("candidate.*"))
        ),
        "evaluate": lambda: "train:1" in small.journal(run),
    }


def test_a_kill_in_training_changes_nothing_but_time(
    small: Any, finished: Path, tiny_base: PolicyRef, tmp_path: Path
) -> None:
    """From a copy in another place of what was there when training began; the blind suite is spared."""
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    with sqlite3.connect(run / "journal.sqlite") as db:
        db.execute("DELETE FROM entries WHERE key IN ('train:1', 'evaluate:1', 'decision:1')")
    shutil.rmtree(run / "rounds")
    kill_in(small, tiny_base, run, signs(small, run)["train"])
    assert "train:1" not in small.journal(run)
    done = small.evolve(tiny_base, run)
    assert done.returncode == 0, done.stderr
    assert small.outcome(run) == small.outcome(finished)


@pytest.mark.slow
def test_a_kill_in_every_phase_changes_nothing_but_time(
    small: Any, finished: Path, tiny_base: PolicyRef, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    undone = {"bank": "bank", "coldstart": "coldstart", "train": "train:1", "evaluate": "evaluate:1"}
    for phase, sign in signs(small, run).items():
        kill_in(small, tiny_base, run, sign)
        assert undone[phase] not in small.journal(run), f"killed too late for {phase}"
    done = small.evolve(tiny_base, run)
    assert done.returncode == 0, done.stderr
    assert small.outcome(run) == small.outcome(finished)
    assert [path for path in run.rglob("*") if path.name.endswith((".partial", ".scratch"))] == []


KILLER = """
import os, signal, sys, threading

within, last = sys.argv.pop().split("/")

def running():
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            yield frame.f_code.co_qualname
            frame = frame.f_back

def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_qualname == last and within in running():
        os.kill(os.getpid(), signal.SIGKILL)

threading.setprofile(watch)
sys.setprofile(watch)
from bat_core.cli.main import main
main()
"""
"""Runs the command and kills it from within, when the function named last is called inside the one named first."""


def killed_inside(small: Any, base: PolicyRef, run: Path, within: str, function: str) -> None:
    words = [sys.executable, "-c", KILLER, *small.command(base, run)[len(small.BAT) :], f"{within}/{function}"]
    done = subprocess.run(
        words, capture_output=True, text=True, env=small.environment(run.parent), timeout=small.PATIENCE
    )
    assert done.returncode == -signal.SIGKILL, (function, done.stderr)


@pytest.mark.slow
def test_kills_inside_a_step_and_a_rollout_change_nothing_but_time(
    small: Any, finished: Path, tiny_base: PolicyRef, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    with sqlite3.connect(run / "journal.sqlite") as db:
        db.execute("DELETE FROM entries WHERE key != 'bank'")
    shutil.rmtree(run / "rounds")
    for function in ("Tensor.backward", "Adam.step"):
        killed_inside(small, tiny_base, run, "run_sft", function)
        assert list(small.journal(run)) == ["bank"]
    for function in ("AgentSandbox.restore", "_Batch.turn", "Tensor.backward", "Adam.step"):
        killed_inside(small, tiny_base, run, "run_grpo", function)
        assert list(small.journal(run)) == ["bank", "coldstart", "evaluate:coldstart", "mixture:1"]
    done = small.evolve(tiny_base, run)
    assert done.returncode == 0, done.stderr
    assert small.outcome(run) == small.outcome(finished)
