"""`bat verify`: rewards from a file, a run's rollouts again, calibration, cost told before and after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bat_core.cli.main import main
from bat_core.evolve.records import RoundRecorder
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.registry import load_domain
from bat_core.verify.calibrate import Agreement, Compared, tables
from bat_core.verify.sealed import Blob, SealedRollout, read_sealed, write_sealed


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(list(words))
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def line(name: str, kit: Any, task: Any, **values: Any) -> SealedRollout:
    """A rollout about S1 with one item that a judge answers."""
    checks = load_domain("medimaging").contract().rubric(task, "S1", task.stratum)
    rubric = Rubric(stage="S1", items=(*checks.items[:2], RubricItem(**{**kit.ITEM.model_dump(), "weight": 1.0})))
    files = {"notes.md": Blob.of(kit.NOTES.encode()), "odd.bin": Blob.of(b"\xff\xfe")}
    whole = {"id": name, "domain": "medimaging", "task": task, "focus": "S1", "rubrics": (rubric,), "files": files}
    return SealedRollout(**{**whole, **values})


def test_rewards_from_a_file(
    tmp_path: Path, endpoint: Any, kit: Any, small_tasks: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.answer = kit.quoting("A1", "Its blob touches dim border cells")
    path = tmp_path / "r.jsonl"
    write_sealed(path, [line("one", kit, small_tasks[0]), line("two", kit, small_tasks[1])])
    assert [one.evidence().files["odd.bin"] for one in read_sealed(path)] == [b"\xff\xfe"] * 2
    code, out, err = call(capsys, "verify", str(path), "--judge", endpoint.url, "--model", "m", "--json")
    found = json.loads(out)
    assert code == 0 and [one["id"] for one in found] == ["one", "two"]
    assert all(one["value"] == pytest.approx(1 / 3) and one["nulls"] == 0 and one["items"] == 3 for one in found)
    assert "2 items, up to 6 calls" in err and "judge: 2 items" in err.splitlines()[-1]
    code, out, _ = call(capsys, "verify", str(path))
    assert code == 0 and "null" in out and "no judge is configured" in " ".join(out.split())


def test_agreement_with_labels(
    tmp_path: Path, endpoint: Any, kit: Any, small_tasks: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    yes, no = (kit.quoting("A1", "Its blob touches dim", verdict) for verdict in ("yes", "no"))
    endpoint.answer = lambda body: (no if "number 3" in body["messages"][1]["content"] else yes)(body)
    path = tmp_path / "labelled.jsonl"
    notes = [{"notes.md": Blob.of(f"{kit.NOTES} Run number {n}.".encode())} for n in range(4)]
    truth = [True, True, False, False]
    write_sealed(
        path,
        [line(str(n), kit, small_tasks[0], files=notes[n], labels={"V5": truth[n], "S1.a": False}) for n in range(4)],
    )
    words = ["verify", "--calibrate", str(path), "--judge", endpoint.url, "--model", "m"]
    code, out, _ = call(capsys, *words, "--json")
    found = json.loads(out)
    assert code == 0 and set(found["item"]) == {"V5", "S1.a"} and set(found["verifier"]) == {"judge", "check"}
    judged = found["verifier"]["judge"]
    assert (judged["right_pass"], judged["false_pass"], judged["lost_pass"], judged["right_fail"]) == (2, 1, 0, 1)
    assert judged["agreement"] == 0.75 and judged["kappa"] == pytest.approx(0.5) and not judged["trustworthy"]
    assert found["verifier"]["check"]["trustworthy"] and found["all"]["all"]["n"] == 8
    code, out, _ = call(capsys, *words)
    assert code == 0 and "kappa" in out and "0.500" in out


def test_a_runs_rollouts_are_scored_again_and_exported(
    tmp_path: Path, small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bat_core.bank.store import read

    states = read(small_run / "bank").states
    recorder = RoundRecorder()
    for state in states[:2]:
        recorder.rollout(state, Rollout(state=state.id, final=state.snapshot), Reward(value=0.5))
    recorder.write(tmp_path)
    table = str(tmp_path / "rollouts.parquet")
    code, out, _ = call(capsys, "verify", table, "--run", str(small_run), "--json")
    assert code == 0 and [one["value"] for one in json.loads(out)] == [0.0, 0.0]
    sealed = tmp_path / "sealed.jsonl"
    assert call(capsys, "verify", table, "--run", str(small_run), "--export", str(sealed))[0] == 0
    code, again, _ = call(capsys, "verify", str(sealed), "--json")
    assert code == 0 and json.loads(again) == json.loads(out)
    code, _, err = call(capsys, "verify", table)
    assert code == 2 and "add --run with the run directory" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"), ("[]", "line: Input should be"), ('{"id": "x"}', "domain: Field required"),
        ("\xff", "is not a text file"), ("", "no rollout of the file has labels"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(text.encode("latin-1"))
    code, _, err = call(capsys, "verify", "--calibrate", str(path))
    assert code == 2 and said in err and len(err.splitlines()) == 1


def test_wrong_use_is_said(tmp_path: Path, kit: Any, small_tasks: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "verify", "seed=3")
    assert code == 2 and "give either FILE or --calibrate LABELLED" in err
    path = tmp_path / "r.jsonl"
    write_sealed(path, [line("one", kit, small_tasks[0], labels={"Z.z": True})])
    code, _, err = call(capsys, "verify", "--calibrate", str(path))
    assert code == 2 and "label for 'Z.z', which its rubrics lack" in err
    assert call(capsys, "verify", str(tmp_path / "none.jsonl"))[0] == 2
    assert "no item of these rollouts" in _no_judged(tmp_path, kit, small_tasks[0], capsys)


def _no_judged(tmp_path: Path, kit: Any, task: Any, capsys: pytest.CaptureFixture[str]) -> str:
    rubric = load_domain("medimaging").contract().rubric(task, "S1", task.stratum)
    write_sealed(tmp_path / "c.jsonl", [line("one", kit, task, rubrics=(rubric,))])
    return call(capsys, "verify", str(tmp_path / "c.jsonl"), "--judge", "http://127.0.0.1:9/v1", "--model", "m")[2]


def test_kappa_is_that_of_the_textbook() -> None:
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    found = tables(Compared("a", "judge", label, verdict) for label, verdict in [*pairs, (True, None)])["all"]["all"]
    assert found.kappa == pytest.approx(0.4) and found.agreement == 0.7 and found.nulls == 1
    assert found.false_accept == 0.4 and not found.trustworthy
    same = Agreement(right_fail=300)
    assert same.kappa is None and same.agreement == 1 and same.trustworthy and not Agreement().trustworthy
    assert Agreement().agreement is None and Agreement(right_pass=1).false_accept is None
