from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import LeakageError
from bat_core.leakage.client import BUILT_IN_RULES, Preflight
from bat_core.processes import frames

Start = Callable[..., Preflight]


@pytest.fixture
def start(source: dict[str, str]) -> Start:
    def make(function: str = "items", *, rules: tuple[str, ...] = (), **options: Any) -> Preflight:
        named = tuple(f"quarry_source:{name}" for name in rules) or BUILT_IN_RULES
        return Preflight(f"quarry_source:{function}", rules=named, environment=source, **options)

    return make


def test_verdicts_come_back_in_order_over_several_batches(start: Start) -> None:
    samples = [(f"s{n}", "QRX-7731-OBOE-58" if n % 7 == 3 else f"clean text {n}") for n in range(300)]
    with start() as preflight:
        checked = preflight.check(iter(samples))
        assert preflight.check([]) == []
    assert [one.id for one in checked] == [sample_id for sample_id, _ in samples]
    assert [one.verdict for one in checked] == ["block" if n % 7 == 3 else "pass" for n in range(300)]
    assert preflight.covered == {"answer": 2, "fact": 0, "identifier": 4, "path": 1, "secret": 1, "text": 1, "trace": 1}
    assert preflight.refused == 4
    assert preflight.digest.startswith("sha256:")


def test_arguments_reach_the_source(start: Start) -> None:
    with start(arguments={"count": 1}) as preflight:
        assert preflight.covered["identifier"] == 1
        assert preflight.covered["text"] == 0


def test_a_sample_that_cannot_be_sent_is_blocked_alone(start: Start) -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with start() as preflight:
        checked = preflight.check(
            [("a", "fine"), ("deep", deep), ("set", {1}), ("b", "\ud800 \x00 fine"), ("nan", float("nan"))]
        )
    assert [one.verdict for one in checked] == ["pass", "block", "block", "pass", "pass"]


def test_deep_json_inside_a_string_does_not_crash(start: Start) -> None:
    with start() as preflight:
        assert preflight.check([("a", "[" * 5000 + '"QRX-7731-OBOE-58"' + "]" * 5000)])[0].verdict == "block"


def test_a_rule_that_raises_blocks(start: Start) -> None:
    with start(rules=("Raising",)) as preflight:
        (checked,) = preflight.check([("a", "clean")])
    assert checked.verdict == "block"
    assert "odd failed: RuntimeError" in checked.findings[0].reason
    assert "7731" not in checked.model_dump_json()


def test_a_talkative_rule_is_silenced(start: Start) -> None:
    with start(rules=("Talkative",)) as preflight:
        (checked,) = preflight.check([("a", "clean")])
    assert checked.verdict == "block"
    assert "7731" not in checked.model_dump_json()


def test_what_rules_print_does_not_disturb_and_goes_to_the_log(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "checker.log"
    with start(rules=("Printing",), log=log) as preflight:
        assert preflight.check([("a", "clean")])[0].verdict == "pass"
    assert "more noise" in log.read_text()


def test_a_killed_checker_is_an_error_and_stays_one(start: Start) -> None:
    with start() as preflight:
        assert preflight.check([("a", "clean")])[0].verdict == "pass"
        os.kill(preflight._process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(LeakageError, match="; "):
                preflight.check([("a", "clean")])


@pytest.mark.parametrize("rule", ["Dying", "Babbling"])
def test_death_or_garbage_in_the_middle_is_an_error(rule: str, start: Start) -> None:
    with start(rules=(rule,)) as preflight, pytest.raises(LeakageError, match="nothing was cleared"):
        preflight.check([("a", "clean")])


def test_a_checker_that_hangs_is_an_error(start: Start) -> None:
    began = time.monotonic()
    with start(rules=("Sleeping",), timeout=3.0) as preflight, pytest.raises(LeakageError, match="TimeoutError"):
        preflight.check([("a", "clean")])
    assert time.monotonic() - began < 15


def test_a_checker_that_does_not_read_is_an_error(start: Start, tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\nexec sleep 30\n")
    deaf.chmod(0o755)
    preflight = start(arguments={"padding": "x" * 1_000_000}, python=str(deaf), timeout=0.5)
    with pytest.raises(LeakageError, match="TimeoutError"), preflight:
        pass


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("broken", {}, "ValueError"),
        ("wrong", {}, "HeldoutItem"),
        ("missing", {}, "can't load"),
        ("items", {"arguments": {"count": 0}}, "no held-out items"),
        ("items", {"arguments": {"odd": 0}}, "TypeError"),
        ("items", {"rules": ("Missing",)}, "can't load"),
        ("items", {"rules": ("items",)}, "not a LeakageRule"),
        ("items", {"python": "/nonexistent/python"}, "can't be started"),
    ],
)
def test_a_checker_that_cannot_start_is_an_error(function: str, options: Any, message: str, start: Start) -> None:
    with pytest.raises(LeakageError, match=message) as caught, start(function, **options):
        pass
    assert "7731" not in str(caught.value)


def test_outside_the_context_nothing_is_checked(start: Start) -> None:
    with pytest.raises(LeakageError, match="not running"):
        start().check([("a", "clean")])


@pytest.mark.parametrize(
    "answer",
    [
        {"checked": []},
        {"checked": [{"id": "b", "verdict": "pass"}]},
        {"checked": [{"id": "a", "verdict": "pass"}, {"id": "a", "verdict": "pass"}]},
        {"checked": [{"id": "a", "verdict": "fine"}]},
        {"checked": [{"id": "a", "verdict": "pass", "findings": [{"rule": "x"}]}]},
        {"checked": None},
        {},
        [],
    ],
)
def test_a_false_answer_is_an_error(answer: Any, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with start() as preflight:
        monkeypatch.setattr("bat_core.processes.child.Child.ask", lambda *_: answer)
        with pytest.raises(LeakageError):
            preflight.check([("a", "clean")])


def test_an_interrupt_ends_the_checker(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with start() as preflight:
        monkeypatch.setattr("bat_core.processes.child.Child.ask", interrupted)
        with pytest.raises(KeyboardInterrupt):
            preflight.check([("a", "clean")])
        with pytest.raises(LeakageError, match="not running"):
            preflight.check([("a", "clean")])


def test_the_checker_outlives_the_thread_that_started_it(start: Start) -> None:
    preflight = start()
    thread = threading.Thread(target=preflight.__enter__)
    thread.start()
    thread.join()
    try:
        assert preflight.check([("a", "clean")])[0].verdict == "pass"
    finally:
        preflight.close()


PARENT = """
import os, sys, time
from bat_core.leakage.client import Preflight
preflight = Preflight("quarry_source:items", environment={"PYTHONPATH": sys.argv[1]}).__enter__()
if os.fork() == 0:
    os.close(1)
    time.sleep(20)  # holds a copy of the checker's stdin
    os._exit(0)
print(preflight._process.pid, flush=True)
time.sleep(60)
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="prctl")
def test_the_checker_dies_with_its_parent(source: dict[str, str]) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, source["PYTHONPATH"]], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert parent.stdout is not None
        checker = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 10
        while not gone(checker) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert gone(checker)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.stdout.close()


def test_the_checker_ends_with_its_stdin_and_speaks_only_frames(source: dict[str, str]) -> None:
    opening = {
        "rules": list(BUILT_IN_RULES),
        "source": "quarry_source:items",
        "arguments": {},
        "receipt_key": "00" * 32,
    }
    request = {"samples": [{"id": "a", "value": "QRX-7731-OBOE-58"}]}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bat_core.leakage.checker"],
        input=frames.encode(opening) + frames.encode(request),
        capture_output=True,
        env={**os.environ, **source},
        timeout=30,
    )
    assert done.returncode == 0
    first = 4 + frames.body_length(done.stdout[:4])
    assert set(json.loads(done.stdout[4:first])) == {"covered", "refused", "index"}
    second = first + 4 + frames.body_length(done.stdout[first : first + 4])
    assert json.loads(done.stdout[first + 4 : second])["checked"][0]["verdict"] == "block"
    assert second == len(done.stdout)
    assert b"stray output" in done.stderr


def test_the_checker_imports_nothing_heavy() -> None:
    script = "import sys, bat_core.leakage.%s; print([m for m in %r if m in sys.modules])"
    heavy = ["torch", "transformers", "trl", "pyarrow", "datasets", "docker"]
    for module, banned in (("checker", heavy), ("client", [*heavy, "numpy"])):
        done = subprocess.run([sys.executable, "-c", script % (module, banned)], capture_output=True, text=True)
        assert done.stdout.strip() == "[]", done.stderr


def test_throughput(start: Start) -> None:
    """A floor that a slow machine clears too; a laptop core does several hundred samples of 3 kB a second."""
    text = "the survey of the eastern shore went on with a spare lens and gain 12.5 at frame 88 " * 10
    messages = [{"role": "user", "content": text}] * 4
    samples = [(str(n), {"messages": messages, "seed": n}) for n in range(100)]
    with start() as preflight:
        began = time.monotonic()
        checked = preflight.check(samples)
    assert {one.verdict for one in checked} == {"pass"}
    assert len(samples) / (time.monotonic() - began) > 20
