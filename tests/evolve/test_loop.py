"""`bat evolve` as a whole, small: real bank, sandboxes, training, evaluator processes."""

from __future__ import annotations

import json
import runpy
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.model.training import PolicyRef

SCORES = {"overall", "agentic", "task", "stages", "tracks", "n"}


def test_the_summary_says_what_came_out(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    for suite in ("heldout", "blind"):
        for policy in ("coldstart", "best"):
            scores = summary[suite][policy]
            assert scores.keys() >= SCORES and scores["n"] + scores["invalid"] == 2
            assert set(scores["stages"]) == {"S1", "S2", "S3", "S4", "S5"} and len(scores["tracks"]) == 2
            assert scores["overall"] is None or 0 <= scores["overall"] <= 100
    (one,) = summary["rounds"]
    assert one.keys() >= {"round", "mixture", "reward", "kl", "decision"}
    assert one["decision"] in ("promoted", "held", "rolled_back") and one["mixture"]["target"]
    assert sum(one["mixture"]["groups"].values()) == 4
    counts = summary["counts"]
    assert (counts["tasks"], counts["states"], counts["rejected"], counts["rollouts"]) == (4, 24, 0, 8)
    assert counts["slices"] > counts["states"] and counts["policy_tokens"] > 0
    assert summary["seconds"].keys() == {"bank", "coldstart", "evaluate", "mixture", "train", "decision", "blind"}
    assert all(seconds >= 0 for seconds in summary["seconds"].values())
    assert (summary["seed"], summary["domain"], summary["name"]) == (5, "medimaging", "run")
    assert summary["stop_reason"] and summary["dropped_observers"] == []


def test_a_run_leaves_what_its_readers_look_for(small: Any, finished: Path) -> None:
    assert list(small.journal(finished)) == [
        "bank",
        "coldstart",
        "evaluate:coldstart",
        "mixture:1",
        "train:1",
        "evaluate:1",
        "decision:1",
        "blind:coldstart",
        "blind:best",
    ]
    names = {path.name for path in (finished / "rounds" / "01").iterdir()}
    wanted = {"mixture.json", "candidate", "rollouts.parquet", "metrics.jsonl", "diagnosis.json", "decision.json"}
    assert names == wanted
    assert {path.name for path in finished.iterdir()} >= {"summary.json", "config.yaml", "bank", "coldstart", "rounds"}
    assert [path for path in finished.rglob("*") if path.name.endswith((".partial", ".scratch"))] == []
    assert (finished / "report" / "index.html").read_text().startswith("<!doctype html>")


def test_nothing_held_out_lies_on_the_trainer_s_side(finished: Path) -> None:
    from bat_medimaging.suites import blind_tasks, heldout_tasks

    secrets = [task.id.encode() for task in (*heldout_tasks(2), *blind_tasks(2))]
    for path in finished.rglob("*"):
        if path.is_file() and finished / "evaluator" not in path.parents:
            data = path.read_bytes()
            assert not any(secret in data for secret in secrets), path
    cells = b"".join(path.read_bytes() for path in (finished / "evaluator").rglob("*.json"))
    assert all(secret in cells for secret in secrets), "the evaluator itself knows them"


def test_the_same_command_again_is_quick_and_does_nothing_again(
    small: Any, finished: Path, tiny_base: PolicyRef
) -> None:
    def traces() -> dict[Path, int]:
        return {
            path: path.stat().st_mtime_ns
            for path in finished.rglob("*")
            if path.is_file() and path.suffix in (".sqlite", ".safetensors", ".parquet", ".tar", ".jsonl", ".log")
        }

    before, entries = traces(), small.journal(finished)
    summary = (finished / "summary.json").read_text()
    began = time.monotonic()
    done = small.evolve(tiny_base, finished)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 30
    assert traces() == before and small.journal(finished) == entries
    assert (finished / "summary.json").read_text() == summary and json.loads(done.stdout) == json.loads(summary)


def test_another_configuration_is_refused_in_the_same_place(small: Any, finished: Path, tiny_base: PolicyRef) -> None:
    kept = {path: path.read_bytes() for path in finished.iterdir() if path.is_file() and path.name != "lock"}
    done = small.evolve(tiny_base, finished, "seed=6")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    with sqlite3.connect(finished / "journal.sqlite") as db:
        (digest,) = db.execute("SELECT value FROM meta WHERE key='configuration'").fetchone()
    assert f"was begun with another configuration ({digest[:19]}, now sha256:" in done.stderr
    assert kept == {path: path.read_bytes() for path in kept}


# -- what CI makes of a run -----------------------------------------------------------------------------------


def complaints(run: Path, **least: float) -> list[str]:
    """Return what `.ci/check_run.py` finds wrong."""
    return list(runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "check_run.py"))["problems"](run, **least))


def rewrite(run: Path, key: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change one entry of the journal, or the summary."""
    if key == "summary":
        value = json.loads((run / "summary.json").read_text())
        change(value)
        (run / "summary.json").write_text(json.dumps(value))
        return
    with sqlite3.connect(run / "journal.sqlite") as db:
        (payload,) = db.execute("SELECT payload FROM entries WHERE key=?", (key,)).fetchone()
        value = json.loads(payload)
        change(value)
        db.execute("UPDATE entries SET payload=? WHERE key=?", (json.dumps(value), key))


@pytest.fixture
def able(finished: Path, tmp_path: Path) -> Path:
    """The run as it would be had its policy been able to do anything."""
    run = Path(shutil.copytree(finished, tmp_path / "able"))
    rewrite(run, "summary", lambda s: s["heldout"]["coldstart"].update(overall=30.0))
    rewrite(run, "summary", lambda s: s["counts"].update(flat_groups=2, dropped_groups=1))
    return run


def test_ci_says_what_a_run_of_an_unable_policy_lacks_and_nothing_of_a_sound_one(finished: Path, able: Path) -> None:
    unable = complaints(finished)
    assert [one for one in unable if one.startswith("theta_0 is at ")] and any(
        "could be learnt" in one for one in unable
    )
    assert complaints(able) == []
    overall = json.loads((able / "summary.json").read_text())["heldout"]["best"]["overall"]
    (gained,) = complaints(able, gain=50.0)
    assert gained == f"heldout gained {overall - 30:.1f}, at least 50.0 expected"


def on(key: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    return lambda run: rewrite(run, key, change)


def remove(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


def in_page(text: str, end: str = "</html>") -> Callable[[Path], object]:
    def spoil(run: Path) -> None:
        page = run / "report" / "index.html"
        page.write_text(page.read_text().rstrip().removesuffix("</html>") + text + end)

    return spoil


SPOILS: list[tuple[Callable[[Path], object], str]] = [
    (remove("summary.json"), "RUN is not a finished run: summary.json is not there"),
    (lambda run: forget(run, "decision:1"), "the journal's phases are "),
    (on("summary", lambda s: s["counts"].update(slices=0)), "the count of slices is 0"),
    (on("summary", lambda s: s["counts"].update(lost=4)), "4 of 8 rollouts were lost"),
    (on("summary", lambda s: s["blind"]["best"].update(invalid=1)), "blind of best: 2 cells, 1 invalid"),
    (on("summary", lambda s: s["blind"]["best"]["stages"].update(S2=None)), "blind of best: 2 cells, 0 invalid"),
    (on("summary", lambda s: s["heldout"]["coldstart"].update(overall=61)), "theta_0 is at 61 of held-out overall"),
    (on("train:1", lambda e: e.update(reward_mean=None)), "round 1: reward_mean is None"),
    (on("train:1", lambda e: e.update(kl=None)), "round 1: kl is None"),
    (on("train:1", lambda e: e.update(finite=False)), "round 1: a logged metric was not finite"),
    (on("evaluate:1", lambda e: e.update(suite="")), "evaluate:1 suite has no digest but "),
    (remove("rounds/01/candidate/model.safetensors"), "train:1: "),
    (lambda run: next((run / "bank" / "snapshots").rglob("*.tar")).unlink(), "the bank can't be read: snapshot "),
    (lambda run: reject(run), "an expert did not earn 1, or idleness something: because"),
    (remove("report/index.html"), "the page RUN/report/index.html is not there"),
    (in_page("<script>1</script>"), "the page loads ['script']"),
    (in_page("<img src='a.png'>"), "the page loads ['img src=a.png']"),
    (in_page("<i style='background: url(x.png)'></i>"), "the page loads ['url(x.png)']"),
    (in_page("", end=""), "the page is cut off"),
]


def forget(run: Path, key: str) -> None:
    with sqlite3.connect(run / "journal.sqlite") as db:
        db.execute("DELETE FROM entries WHERE key=?", (key,))


def reject(run: Path) -> None:
    """Have a state refused that a task should have had."""
    from bat_core.bank.store import read, write
    from bat_core.bank.tables import Rejection

    bank = read(run / "bank")
    why = [Rejection("sha256:0", "admission", "admission", reason="because")]
    write(run / "bank", bank.states[:-1], bank.slices, why, bank.report.tasks)


@pytest.mark.parametrize(("spoil", "said"), SPOILS, ids=[said[:30] for _, said in SPOILS])
def test_ci_sees_what_a_run_lacks(able: Path, spoil: Callable[[Path], object], said: str) -> None:
    spoil(able)
    wrong = complaints(able)
    assert wrong and wrong[0].startswith(said.replace("RUN", str(able))), wrong
