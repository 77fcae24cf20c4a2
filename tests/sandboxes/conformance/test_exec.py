"""Commands: arguments, streams, environment, exit codes, receipts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.hooks.sandbox import Sandbox

Inside = Callable[..., Any]


def test_arguments_streams_and_codes(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.exec(["sh", "-c", "printf '%s|' \"$@\"; echo bad >&2; exit 7", "sh", "a b", "", "*", "ü\n"])
        assert (result.status, result.rc) == ("exited", 7)
        assert result.stdout.decode() == "a b||*|ü\n|" and result.stderr == b"bad\n"
        assert result.out_sha == "sha256:" + hashlib.sha256(result.stdout).hexdigest()
        assert (result.stdout_total, result.stderr_total) == (len(result.stdout), 4)
        assert 0 < result.wall_s < 10 and result.cpu_s >= 0 and result.max_rss > 0

    inside(body)


@pytest.mark.parametrize(("command", "rc", "said"), [("no-such", 127, b"not found"), ("./plain", 126, b"denied")])
def test_what_cannot_start_is_a_result(inside: Inside, command: str, rc: int, said: bytes) -> None:
    async def body(box: Sandbox) -> None:
        await box.write("plain", b"text")
        result = await box.exec([command])
        assert (result.status, result.rc) == ("exited", rc)
        assert said in result.stderr and command.encode() in result.stderr

    inside(body)


def test_a_signal_is_not_an_exit_code(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.exec(["sh", "-c", "kill -SEGV $$"])
        assert (result.status, result.rc) == ("killed", -11)

    inside(body)


@pytest.mark.parametrize("size", [0, 1, 100_000, 5_000_000])
def test_standard_input_goes_in_whole(inside: Inside, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"." * (size % 256)

    async def body(box: Sandbox) -> None:
        result = await box.exec(["sha256sum"], stdin=data)
        assert result.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
        assert (await box.exec(["true"], stdin=data)).rc == 0, "a reader that doesn't read is no error"

    inside(body)


def test_large_arguments_are_a_result_too(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.exec(["echo", "x" * 200_000])
        assert (result.status, result.rc) == ("exited", 126) and b"too long" in result.stderr

    inside(body)


def test_environments_add_up(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        show = ["sh", "-c", "echo $ONE $TWO"]
        assert (await box.exec(show)).stdout == b"1 2\n"
        assert (await box.exec(show, env={"TWO": "zwei"})).stdout == b"1 zwei\n"
        assert (await box.exec(show)).stdout == b"1 2\n"
        assert (await box.python("import os; print(os.environ['ONE'])")).stdout == b"1\n"

    inside(body, env={"ONE": "1", "TWO": "2"})


def test_the_toolbelt_leads(inside: Inside, tmp_path: Path) -> None:
    belt = tmp_path / "belt"
    (belt / "bin").mkdir(parents=True)
    (belt / "bin" / "uname").write_text("#!/bin/sh\necho belt\n")
    (belt / "bin" / "uname").chmod(0o755)
    (belt / "trade.py").write_text("ANSWER = 42\n")

    async def body(box: Sandbox) -> None:
        assert (await box.exec(["uname"])).stdout == b"belt\n"
        assert (await box.exec(["python3", "-c", "import trade; print(trade.ANSWER)"])).stdout == b"42\n"
        assert (await box.python("import sys; print('trade' in sys.modules, trade.ANSWER)")).stdout == b"True 42\n"
        assert (await box.exec(["cat", "/toolbelt/trade.py"])).stdout == b"ANSWER = 42\n"

    inside(body, toolbelt=str(belt), preload=("trade",))


def test_receipts_chain_through_the_workspace(inside: Any) -> None:
    async def body(box: Sandbox) -> None:
        first = await box.exec(["sh", "-c", "echo 1 > a"])
        idle = await box.exec(["cat", "a"])
        second = await box.python("open('a', 'w').write('2')")
        assert first.ws_before != first.ws_after == idle.ws_before == idle.ws_after == second.ws_before
        assert second.ws_after == inside.store.put_files({"a": b"2"}).root
        await box.write("a", b"3")
        third = await box.exec(["true"])
        assert third.ws_before == third.ws_after == inside.store.put_files({"a": b"3"}).root

    inside(body)


@pytest.mark.parametrize("argv", [["a\0b"], ["echo", "a\0b"], ["echo", "\ud800"], ["\ud800"], [""], ["/"], ["."]])
def test_what_no_program_can_be_given_is_a_result(inside: Inside, argv: list[str]) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.exec(argv)
        assert result.status == "exited" and result.rc in (126, 127) and result.stderr
        assert (await box.exec(["echo", "ok"], env={"A": "1"})).stdout == b"ok\n"

    inside(body)


def test_an_empty_command_line_is_our_own_mistake(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        with pytest.raises(ValueError, match="argv"):
            await box.exec([])

    inside(body)


def test_python_and_its_packages_are_there_even_in_isolated_mode(isolated: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.exec(["python3", "-I", "-c", "import numpy, sys; print(numpy.ones(2).sum(), sys.prefix)"])
        assert result.stdout == b"2.0 /opt/venv\n", result.stderr
        assert (await box.exec(["python3", "-c", "print(hash('a'))"])).stdout == (
            await box.exec(["python3", "-c", "print(hash('a'))"])
        ).stdout

    isolated(body, preload=("numpy",))
