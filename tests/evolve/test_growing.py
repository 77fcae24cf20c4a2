"""A bank that grows while its run trains: the same generations as anybody makes from that seed, kill or no kill."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bat_core.bank.store import generations, read
from bat_core.model.training import PolicyRef

pytestmark = pytest.mark.slow
BANK = ["seed=5", "bank.tasks=4", "bank.workers=1", "bank.cheats=false", "sandbox.provider=bubblewrap"]
BANK += ["rollout.turns=3", "rollout.stage_turns=2", "rollout.turn_tokens=24", "rollout.live=4"]
BANK += ["evaluate.tasks=2", "evaluate.blind_tasks=2"]
WORDS = [*BANK, "bank.grow=4", "loop.rounds=3", "coldstart.steps=1", "coldstart.batch=4", "coldstart.micro_batch=4"]
WORDS += ["coldstart.slices=8", "train.steps=1", "train.rollouts=2", "train.groups=4", "train.micro_batch=8"]
WORDS += ["train.probe=2", "evaluate.resamples=100", "gate.patience=9"]


def bat(small: Any, folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*small.BAT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=small.environment(folder)
    )


def done(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    return out


def test_generations_follow_from_the_seed_alone(small: Any, tiny_base: PolicyRef, tmp_path: Path) -> None:
    run, plain = tmp_path / "run", tmp_path / "plain"
    words = ["evolve", *WORDS, f"policy.base={tiny_base.path}", "--run", str(run)]
    killed = bat(small, tmp_path, *words)
    until = time.monotonic() + 200
    while "coldstart" not in small.journal(run):  # generation 2 is in the making
        assert killed.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    done(bat(small, tmp_path, *words))
    found = small.journal(run)
    rounds = [key for key in found if key.startswith("train:")]
    named = [found["bank"]["digest"], *(found[f"bank:{n}"]["digest"] for n in range(2, len(rounds) + 1))]
    assert len(rounds) == 3 and generations(run / "bank") == [1, 2, 3], "and none that no round has named"
    assert [read(run / "bank", n).report.digest for n in (1, 2, 3)] == named
    assert found["bank:3"]["tasks"] == 12 and list(found).index("bank:2") > list(found).index("decision:1")
    made = [json.loads(done(bat(small, tmp_path, "bank", "build", *BANK, "--run", str(plain), "--json")))["digest"]]
    for _ in range(2):
        words = ["bank", "build", *BANK, "--run", str(plain), "--append", "--json"]
        made.append(json.loads(done(bat(small, tmp_path, *words)))["digest"])
    assert made == named
    done(bat(small, tmp_path, "bank", "check", str(run)))
    assert not list((run / "bank").rglob("parts")) and not list((run / "bank" / "generations").rglob("snapshots"))
