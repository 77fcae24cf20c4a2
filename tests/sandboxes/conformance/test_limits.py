"""Limits that a command hits are results, and nobody survives one."""

from __future__ import annotations

import hashlib
import resource
import time
from collections.abc import Callable
from typing import Any

import pytest

from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import Guarantee

Inside = Callable[..., Any]
ALIVE = ["sh", "-c", "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done 2>/dev/null | grep -o 'sleep 47[0-9]'"]


@pytest.mark.parametrize(
    "script",
    [
        "sleep 471",
        "setsid sleep 472 & sleep 473",
        "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; sleep 474' & while :; do :; done",
        "(setsid setsid sleep 475 &) ; exec sleep 476",
    ],
)
def test_a_timeout_kills_everything(inside: Inside, script: str) -> None:
    async def body(box: Sandbox) -> None:
        began = time.monotonic()
        result = await box.exec(["sh", "-c", f"echo before; {script}"], timeout=0.3)
        assert (result.status, result.rc, result.stdout) == ("timeout", None, b"before\n")
        assert result.wall_s >= 0.3 and time.monotonic() - began < 4
        assert (await box.exec(ALIVE)).stdout == b""

    inside(body)


def test_a_background_process_ends_with_its_command(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        began = time.monotonic()
        result = await box.exec(["sh", "-c", "setsid sleep 477 & (sleep 478 &); echo done"])
        assert (result.status, result.rc, result.stdout) == ("exited", 0, b"done\n")
        assert time.monotonic() - began < 4, "it held our pipe, and that didn't keep us"
        assert (await box.exec(ALIVE)).stdout == b""

    inside(body)


def test_a_timeout_in_python_is_one_too(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.python("print('a', flush=True)\nwhile True: pass", timeout=0.2)
        assert (result.status, result.rc, result.stdout) == ("timeout", None, b"a\n")
        assert (await box.python("print(1)")).stdout == b"1\n"

    inside(body)


def test_a_flood_is_counted_and_hashed_but_not_kept(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await box.exec(["sh", "-c", "head -c 50000000 /dev/zero; head -c 3000000 /dev/zero >&2"])
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert (result.stdout_total, result.stderr_total) == (50_000_000, 3_000_000)
        assert result.stdout == bytes(1 << 20) and result.stderr == bytes(1 << 20)
        assert result.out_sha == "sha256:" + hashlib.sha256(bytes(50_000_000)).hexdigest()
        assert grown < 20_000, "kilobytes: host memory stays flat"

    inside(body)


def test_a_process_cannot_take_more_memory_than_allowed(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        greedy = "x = bytearray(300 << 20); print('got it')"
        for result in (await box.exec(["python3", "-c", greedy]), await box.python(greedy)):
            assert (result.status, result.rc) == ("exited", 1) and b"MemoryError" in result.stderr

    inside(body, limits={"memory": 200 << 20})


def test_many_processes_cannot_take_it_together(isolated: Inside) -> None:
    async def body(box: Sandbox) -> None:
        code = "import os, time\nfor i in range(3): os.fork()\nx = bytearray(b'x') * (90 << 20)\ntime.sleep(20)"
        result = await box.exec(["python3", "-c", code])
        assert (result.status, result.rc) == ("oom", None)
        assert (await box.exec(["true"])).rc == 0

    isolated(body, limits={"memory": 200 << 20, "pids": 16})


def test_not_even_faster_than_any_watch(isolated: Inside) -> None:
    """Where a control group says no the agent lives on, and the result says why all the same."""
    code = "import os\nfor _ in range(4): os.fork()\nx = bytearray(b'x') * (180 << 20)\nwhile True: pass"

    async def body(box: Sandbox) -> None:
        result = await box.exec(["python3", "-c", code])
        assert (result.status, result.rc) == ("oom", None)
        assert (await box.exec(["echo", "ok"])).stdout == b"ok\n"

    isolated(body, limits={"memory": 200 << 20, "disk": 1 << 20, "pids": 32})


def test_a_fork_bomb_fizzles_out(isolated: Inside) -> None:
    async def body(box: Sandbox) -> None:
        code = "import os, time\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(30)\n    n += 1\n"
        result = await box.exec(["python3", "-c", code + "except OSError: print(n)"])
        assert 20 <= int(result.stdout) <= 40
        bomb = await box.exec(["sh", "-c", "b() { b | b & }; b; sleep 5"], timeout=1)
        assert bomb.status in ("timeout", "exited")
        assert (await box.exec(["true"])).rc == 0

    isolated(body, limits={"pids": 40})


@pytest.mark.parametrize("place", ["/workspace/x", "/tmp/x", "/dev/shm/x"])
def test_a_full_disk_is_full(isolated: Inside, place: str) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.exec(["sh", "-c", f"i=0; while head -c 3000000 /dev/zero > {place}$i; do i=$((i+1)); done"])
        assert b"No space left" in result.stderr
        assert (await box.exec(["sh", "-c", f"rm {place}*"])).rc == 0

    isolated(body, limits={"disk": 8 << 20})


@pytest.mark.parametrize("place", ["/x", "/dev/x", "/etc/x", "/opt/x", "/usr/x", "/proc/x"])
def test_nothing_else_can_be_written(isolated: Inside, place: str) -> None:
    async def body(box: Sandbox) -> None:
        assert (await box.exec(["sh", "-c", f"echo 1 > {place}"])).rc != 0

    isolated(body)


def test_an_inode_bomb_is_ended(isolated: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.python("import itertools\nfor n in itertools.count(): open(f'/tmp/{n}', 'w')")
        if Guarantee.INODES in box.guarantees:
            assert result.rc == 1 and b"No space left" in result.stderr
        else:
            assert (result.status, result.rc) == ("killed", None)
        left = await box.exec(["sh", "-c", "ls /tmp | wc -l; find /tmp -type f -delete"])
        assert 900 <= int(left.stdout) < 100_000

    isolated(body, limits={"inodes": 1000})


def test_files_and_handles_are_limited(isolated: Inside) -> None:
    async def body(box: Sandbox) -> None:
        big = "f = open('big', 'wb')\ntry: f.truncate(9 << 20)\nexcept OSError as e: print(e.errno)"
        assert (await box.python(big)).stdout == b"27\n"
        many = "import os\ntry:\n while True: n = os.dup(0)\nexcept OSError: print(n)"
        assert (await box.python(many)).stdout == b"99\n"

    isolated(body, limits={"disk": 8 << 20, "open_files": 100})


def test_a_limit_is_not_our_failure(inside: Any) -> None:
    async def body(box: Sandbox) -> None:
        await box.exec(["sh", "-c", "sleep 479"], timeout=0.1)
        ref = await box.snapshot()
        assert ref == inside.store.put_files({})

    inside(body)
