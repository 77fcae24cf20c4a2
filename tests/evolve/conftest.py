"""A small run, its command and what is read of it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bat_core.model.training import PolicyRef

BAT = [sys.executable, "-c", "from bat_core.cli.main import main; main()"]
SMALL: dict[str, dict[str, int | str]] = {
    "bank": {"tasks": 4, "workers": 1, "cheats": "false"},
    "sandbox": {"provider": "bubblewrap"},
    "loop": {"rounds": 1},
    "coldstart": {"steps": 1, "batch": 4, "micro_batch": 4, "slices": 8},
    "train": {"steps": 1, "rollouts": 2, "groups": 4, "micro_batch": 8, "probe": 2},
    "evaluate": {"tasks": 2, "blind_tasks": 2, "resamples": 100},
    "rollout": {"turns": 3, "stage_turns": 2, "turn_tokens": 24, "live": 4},
}
WORDS = [f"{section}.{key}={value}" for section, values in SMALL.items() for key, value in values.items()]
PATIENCE = 240


def command(base: PolicyRef, run: Path, *more: str) -> list[str]:
    return [*BAT, "evolve", *WORDS, "seed=5", f"policy.base={base.path}", *more, "--run", str(run), "--json"]


def environment(tmp: Path) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "BAT_CACHE": str(tmp / "cache"), "HF_HUB_OFFLINE": "1"}


def evolve(base: PolicyRef, run: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = command(base, run, *more)
    return subprocess.run(words, capture_output=True, text=True, env=environment(run.parent), timeout=PATIENCE)


@pytest.fixture(scope="session")
def finished(tiny_base: PolicyRef, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    run = tmp_path_factory.mktemp("whole") / "run"
    done = evolve(tiny_base, run)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((run / "summary.json").read_text())
    return run


def journal(run: Path) -> dict[str, Any]:
    """Return the entries so far; also while somebody writes."""
    if not (run / "journal.sqlite").exists():
        return {}
    try:
        with sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True, timeout=5) as db:
            rows = db.execute("SELECT key, payload FROM entries ORDER BY id").fetchall()
    except sqlite3.OperationalError:
        return {}
    return {key: json.loads(payload) for key, payload in rows}


def outcome(run: Path) -> Any:
    """Return what a run decided and made, without the folders that it lies in."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items() if key != "path"}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return plain(journal(run))


@pytest.fixture(scope="session")
def small() -> Any:
    """The functions of this file."""
    return sys.modules[__name__]
