"""A bank that grows while its run trains: the same generations as anybody makes from that seed, kill or no kill."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bat_core.bank.store import generations, read
from bat_core.model.training import PolicyRef

pytestmark = pytest.mark.slow
BAT = [sys.executable, "-c", "from bat_core.cli.main import main; main()"]
BANK = ["seed=5", "bank.tasks=4", "bank.workers=1", "bank.cheats=false", "sandbox.provider=bubblewrap"]
BANK += ["rollout.turns=3", "rollout.stage_turns=2", "rollout.turn_tokens=24", "rollout.live=4"]
BANK += ["evaluate.tasks=2", "evaluate.blind_tasks=2"]
WORDS = [*BANK, "bank.grow=4", "loop.rounds=3", "coldstart.steps=1", "coldstart.batch=4", "coldstart.micro_batch=4"]
WORDS += ["coldstart.slices=8", "train.steps=1", "train.rollouts=2", "train.groups=4", "train.micro_batch=8"]
WORDS += ["train.probe=2", "evaluate.resamples=100", "gate.patience=9"]


def bat(folder: Path, *words: str) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "BAT_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen([*BAT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def done(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    return out


def entries(run: Path) -> dict[str, Any]:
    if not (run / "journal.sqlite").exists():
        return {}
    try:
        with sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True, timeout=5) as db:
            rows = db.execute("SELECT key, payload FROM entries ORDER BY id").fetchall()
    except sqlite3.OperationalError:
        return {}
    return {key: json.loads(payload) for key, payload in rows}


def test_generations_follow_from_the_seed_alone(tiny_base: PolicyRef, tmp_path: Path) -> None:
    run, plain = tmp_path / "run", tmp_path / "plain"
    words = ["evolve", *WORDS, f"policy.base={tiny_base.path}", "--run", str(run)]
    killed = bat(tmp_path, *words)
    until = time.monotonic() + 200
    while "coldstart" not in entries(run):  # generation 2 is in the making
        assert killed.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    done(bat(tmp_path, *words))
    found = entries(run)
    rounds = [key for key in found if key.startswith("train:")]
    named = [found["bank"]["digest"], *(found[f"bank:{n}"]["digest"] for n in range(2, len(rounds) + 1))]
    assert len(rounds) == 3 and generations(run / "bank") == [1, 2, 3], "and none that no round has named"
    assert [read(run / "bank", n).report.digest for n in (1, 2, 3)] == named
    assert found["bank:3"]["tasks"] == 12 and list(found).index("bank:2") > list(found).index("decision:1")
    made = [json.loads(done(bat(tmp_path, "bank", "build", *BANK, "--run", str(plain), "--json")))["digest"]]
    for _ in range(2):
        words = ["bank", "build", *BANK, "--run", str(plain), "--append", "--json"]
        made.append(json.loads(done(bat(tmp_path, *words)))["digest"])
    assert made == named
    done(bat(tmp_path, "bank", "check", str(run)))
    assert not list((run / "bank").rglob("parts")) and not list((run / "bank" / "generations").rglob("snapshots"))
