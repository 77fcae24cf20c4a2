"""Real child processes: what they answer, how they end, and with whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bat_core.processes import frames
from bat_core.processes.child import Child

ECHO = """
    import os, signal, sys, time
    from bat_core.processes import frames
    from bat_core.processes.serving import served

    def serve(source, sink):
        print("stray print")
        while True:
            try:
                request = frames.read(source)
            except EOFError:
                return 0
            match request:
                case {"sleep": seconds}: time.sleep(seconds)
                case {"raw": text}: sink.write(bytes.fromhex(text)); sink.flush()
                case {"twice": value}: frames.write(sink, value); frames.write(sink, value)
                case {"variable": name}: frames.write(sink, os.environ.get(name))
                case {"deaf": _}: frames.write(sink, None); time.sleep(60)
                case {"interrupt": _}: signal.raise_signal(signal.SIGINT); frames.write(sink, "still here")
                case _: frames.write(sink, request)

    sys.exit(served(serve))
"""
Start = Callable[..., Child]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    (tmp_path / "echo_child.py").write_text(textwrap.dedent(ECHO))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    started: list[Child] = []

    def make(**options: Any) -> Child:
        started.append(Child("echo_child", tmp_path / "log", **options))
        return started[-1]

    yield make
    for child in started:
        child.kill()


def ask(child: Child, value: Any, timeout: float = 30, **options: Any) -> Any:
    return child.ask(frames.encode(value), timeout, **options)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(what: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.05)
    return what()


def test_values_go_and_come_whole_also_large_ones_and_prints_go_to_the_log(start: Start, tmp_path: Path) -> None:
    child = start()
    large = {"text": "x" * 3_000_000, "more": [1, None, "é"]}
    assert ask(child, large) == large and ask(child, "small") == "small"
    assert ask(child, {"twice": 7}) == 7 and child.ask(b"", 30) == 7, "an empty frame only waits"
    assert ask(child, {"interrupt": 1}) == "still here", "an interrupt is the parent's to handle"
    child.close()
    child.close()
    assert gone(child.pid) and "stray print" in (tmp_path / "log").read_text()
    with pytest.raises(EOFError):
        ask(child, "too late")


@pytest.mark.parametrize(
    ("request_", "options", "error"),
    [
        ({"sleep": 30}, {"timeout": 0.3}, TimeoutError),
        ({"raw": "ffffffff"}, {}, ValueError),
        ({"raw": "00000001" + "7b"}, {}, ValueError),
        ("more than allowed", {"limit": 8}, ValueError),
    ],
)
def test_what_is_late_or_no_frame_is_an_error(
    start: Start, request_: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(start(), request_, **options)


def test_a_child_that_is_killed_is_an_error_and_stays_one(start: Start) -> None:
    child = start()
    assert ask(child, 1) == 1
    os.kill(child.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises((EOFError, OSError)):
            ask(child, 1)


def test_a_child_that_does_not_end_with_its_stdin_is_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bat_core.processes.child._PATIENCE", 0.3)
    child = start()
    ask(child, {"deaf": 1})
    child.close()
    assert gone(child.pid)


def test_a_child_gets_a_few_variables_and_those_it_is_given(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SOME_TOKEN", "BAT_PLUGINS"):
        monkeypatch.setenv(name, "ours")
    child = start(environment={"GIVEN": "x"})
    assert [ask(child, {"variable": name}) for name in ("SOME_TOKEN", "BAT_PLUGINS", "GIVEN")] == [None, "ours", "x"]


def test_an_interpreter_that_is_not_there_is_an_oserror(start: Start) -> None:
    with pytest.raises(OSError, match="nowhere"):
        start(python="/nowhere/python")


def test_a_child_outlives_the_thread_that_started_it(start: Start) -> None:
    made: list[Child] = []
    thread = threading.Thread(target=lambda: made.append(start()))
    thread.start()
    thread.join()
    assert ask(made[0], "there") == "there"


CHILD = """
import os, time
from pathlib import Path
from bat_core.processes import frames
from bat_core.processes.child import Child
child = Child("echo_child", Path(os.devnull))
child.ask(frames.encode(1))
if os.fork() == 0:
    os.close(1)
    time.sleep(20)  # holds a copy of the child's stdin
    os._exit(0)
print(child.pid, flush=True)
time.sleep(60)
"""
WORKER = """
import os, sys
from bat_core.executors import LocalExecutor
if __name__ == "__main__":
    executor = LocalExecutor(1)
    list(executor.map("builtins:abs", [1]))
    print(*executor._pool._processes, flush=True)
    list(executor.map("time:sleep", [60]))
"""


@pytest.mark.parametrize("code", [CHILD, WORKER], ids=["child", "worker"])
def test_children_and_workers_die_with_their_parent(start: Start, code: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
        assert wait_until(lambda: gone(pid))
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.stdout.close()
