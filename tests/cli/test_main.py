from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bat_core.cli.main import main

BAT = [sys.executable, "-c", "from bat_core.cli.main import main; main()"]
HEAVY = (
    "torch",
    "transformers",
    "trl",
    "vllm",
    "docker",
    "numpy",
    "pydantic",
    "omegaconf",
    "loguru",
    "stevedore",
    "rich.table",
)


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BAT, *words], capture_output=True, text=True, env=os.environ | environment, timeout=60)


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run `bat` in this process; return its exit code, output and errors."""
    code = 0
    try:
        main(list(words))
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("words", [["--help"], []])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = f"""
import sys
from bat_core.cli.main import main
try:
    main({words!r})
except SystemExit as leaving:
    print("exit", leaving.code)
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["exit 0", "[]"]
    for command in ("evolve", "bank", "evaluate", "report", "plugins", "config", "doctor"):
        assert f"\n  {command} " in done.stdout


def test_help_takes_less_than_half_a_second() -> None:
    """The best of three, in processor time where the machine is busy with other things."""
    best = 9.0
    for _ in range(3):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        assert run("--help").returncode == 0
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, wall, busy)
    assert best < 0.5


@pytest.mark.parametrize("words", [["nonsense"], ["evolve", "--nonsense"], ["plugins", "nonsense"]])
def test_wrong_use_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, *words)
    assert code == 2 and "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["config", "show", "train.stps=4"],
            "bat: unknown key 'train.stps' in command line; did you mean 'train.steps'?",
        ),
        (["config", "show", "--preset", "gpus"], "bat: unknown preset 'gpus'; did you mean 'gpu'?"),
        (["evolve", "--dry-run", "--config", "nowhere.yaml"], "bat: can't read the configuration nowhere.yaml: "),
        (["evolve", "--domain", "medimagin"], "bat: no plugin named 'medimagin' of kind domains; did you mean"),
        (["evaluate", "nowhere", "--suite", "secret"], "bat: no suite named 'secret'; use heldout or blind"),
        (["evaluate", "nowhere"], "bat: "),
    ],
)
def test_an_expected_failure_is_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *words)
    assert code == 2 and out == ""
    assert err.startswith(line) and err.count("\n") == 1


def test_a_traceback_only_with_debug() -> None:
    quiet, loud = run("config", "show", "x=1"), run("--debug", "config", "show", "x=1")
    assert quiet.returncode == 2 and "Traceback" not in quiet.stderr
    assert loud.returncode != 0 and "Traceback" in loud.stderr


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import bat_core

    assert call(capsys, "--version") == (0, bat_core.__version__ + "\n", "")


def test_a_configuration_is_shown_with_origins(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "config", "show", "train.steps=3", "--json")
    shown = json.loads(out)
    assert code == 0 and shown["config"]["train"]["steps"] == 3
    assert shown["origins"]["train.steps"] == "command line" and shown["origins"]["domain"].startswith("domain ")


def test_a_preset_that_is_named_in_a_file_is_really_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("preset: gpu\ntrain: {steps: 7}\n")
    _, out, _ = call(capsys, "config", "show", "--config", str(path), "--json")
    train = json.loads(out)["config"]["train"]
    assert (train["steps"], train["rollouts"], train["lr"]) == (7, 4, 2.5e-7)
    _, again, _ = call(capsys, "config", "show", "preset=gpu", "train.steps=7", "--json")
    assert json.loads(again)["config"] == json.loads(out)["config"]


def test_a_saved_configuration_means_the_same_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = call(capsys, "config", "show", "--preset", "gpu", "train.lr=1e-7")
    path = tmp_path / "config.yaml"
    path.write_text(text)
    _, one, _ = call(capsys, "config", "show", "--config", str(path), "--json")
    _, other, _ = call(capsys, "config", "show", "--preset", "gpu", "train.lr=1e-7", "--json")
    assert json.loads(one)["config"] == json.loads(other)["config"]


def test_the_schema_is_a_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "config", "schema")
    assert "gate" in json.loads(out)["properties"]


def test_a_dry_run_says_what_to_expect_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "evolve", "--dry-run", "--json", "--run", str(tmp_path / "run"))
    assert code == 0 and json.loads(out)["total_rollouts"] > 0 and list(tmp_path.iterdir()) == []
    code, out, _ = call(capsys, "evolve", "--dry-run", "--run", str(tmp_path / "run"))
    assert code == 0 and "work to expect" in out


def test_plugins_are_listed_with_a_broken_one_in_its_row(
    capsys: pytest.CaptureFixture[str], distribute: Callable[[str, str, str], Path]
) -> None:
    distribute("nlp", "", "[bat_core.judges]\nj = nowhere_at_all:J\n[bat_core.verifiers]\ncheck = json:loads\n")
    code, out, _ = call(capsys, "plugins", "list", "--json")
    rows = {(row["kind"], row["distribution"], row["name"]): row for row in json.loads(out)}
    assert code == 0
    assert rows["judges", "bat-nlp", "j"]["state"] == "broken"
    assert rows["judges", "bat-nlp", "j"]["reason"] == "No module named 'nowhere_at_all'"
    assert (
        rows["verifiers", "bat-nlp", "check"]["state"] == rows["verifiers", "bat-core", "check"]["state"] == "ambiguous"
    )
    assert rows["curricula", "bat-core", "weakest-stage"]["state"] == "ok"


def test_a_command_of_a_plugin_is_run_by_name_and_a_broken_one_says_so(
    capsys: pytest.CaptureFixture[str], distribute: Callable[[str, str, str], Path]
) -> None:
    entries = "[bat_core.commands]\nhello = x:hello\nbad = x:nothing\n"
    distribute("x", "def hello(): print('hello from a plugin')\n", entries)
    assert call(capsys, "hello") == (0, "hello from a plugin\n", "")
    code, _, err = call(capsys, "bad")
    assert code == 2 and err.startswith("bat: commands plugin 'bad' from bat-x 0.1.0") and err.count("\n") == 1
    assert "hello" in call(capsys, "--help")[1]


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    with subprocess.Popen([*BAT, "config", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE
