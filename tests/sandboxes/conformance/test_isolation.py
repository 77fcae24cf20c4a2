"""What a command must not be able to do, tried for real."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.hooks.sandbox import Sandbox
from bat_core.sandboxes.provider import AgentProvider

Inside = Callable[..., Any]


def test_the_environment_and_the_files_of_the_host_are_out_of_reach(
    isolated: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    bait = tmp_path / "bait"
    bait.write_text("hush")
    bait.chmod(0o644)

    async def body(box: Sandbox) -> None:
        shown = await box.exec(["sh", "-c", "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"])
        assert b"hush" not in shown.stdout and b"SECRET" not in shown.stdout
        assert {line.split(b"=")[0] for line in (await box.exec(["env"])).stdout.splitlines()} <= {
            b"PATH", b"HOME", b"LANG", b"PYTHONHASHSEED", b"PYTHONDONTWRITEBYTECODE",
            b"OMP_NUM_THREADS", b"OPENBLAS_NUM_THREADS", b"MKL_NUM_THREADS",
        }  # fmt: skip
        for path in (str(bait), "/etc/shadow", "/etc/machine-id", "/var/log", "/home", str(Path.cwd()), "/run/lock"):
            assert (await box.exec(["ls", path])).rc != 0, path
        assert b"root:x:0:0::/:/bin/false" in (await box.exec(["cat", "/etc/passwd"])).stdout
        assert int((await box.exec(["id", "-u"])).stdout) >= 1000
        assert (await box.exec(["uname", "-n"])).stdout == b"sandbox\n"

    isolated(body)


def test_there_is_no_network(isolated: Inside) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""
import errno, socket
def tried(*args):
    try:
        s = socket.socket(*args[:3])
    except OSError as error:
        return errno.errorcode[error.errno]
    try:
        s.settimeout(1); s.connect(args[3]); return 'reached'
    except OSError as error:
        return errno.errorcode[error.errno]
print(tried(socket.AF_INET, socket.SOCK_STREAM, 0, ('127.0.0.1', {port})))
print(tried(socket.AF_INET, socket.SOCK_DGRAM, 0, ('192.0.2.1', 53)))
print(tried(40, socket.SOCK_STREAM, 0, (2, 1)))
print(tried(socket.AF_NETLINK, socket.SOCK_RAW, 9, (0, 0)))
print(tried(17, socket.SOCK_RAW, 0, ('lo', 0)))
print([line.split(':')[0].strip() for line in open('/proc/net/dev')][2:])
"""

        async def body(box: Sandbox) -> None:
            result = await box.python(code)
            assert result.stdout.decode().splitlines() == [
                "ECONNREFUSED", "ENETUNREACH", "EAFNOSUPPORT", "EAFNOSUPPORT", "EAFNOSUPPORT", "['lo']",
            ], result.stderr  # fmt: skip

        isolated(body)


def test_the_agent_is_untouchable(isolated: Inside) -> None:
    async def body(box: Sandbox) -> None:
        for script in ("kill -9 -1", "kill -9 1; kill -INT 1; kill -STOP 1; kill -TERM 1; kill -SEGV 1; kill -HUP 1"):
            await box.exec(["sh", "-c", script])
            assert (await box.exec(["echo", "ok"])).stdout == b"ok\n"
        for path in ("environ", "mem", "maps", "fd/0", "fd/3", "fd/4", "cwd/x"):
            assert (await box.exec(["cat", f"/proc/1/{path}"])).rc != 0, path
        for path in ("fd", "root/", "cwd/", "map_files"):
            assert (await box.exec(["ls", f"/proc/1/{path}"])).rc != 0, path
        holds = await box.python("import os; print(sorted(os.listdir('/proc/self/fd')))")
        assert holds.stdout == b"['0', '1', '2', '3']\n", "three streams, and the listing's own"

    isolated(body)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("unshare(0x10000000)", 1),  # a user namespace
        ("unshare(0x40000000)", 1),  # a network namespace
        ("ptrace(16, 1, 0, 0)", 1),
        ("mount(b'none', b'/tmp', b'tmpfs', 0, 0)", 1),
        ("personality(0x0040000)", 1),
        ("shmget(1, 4096, 0o1666)", 1),
        ("memfd_create(b'x', 0)", 38),
        ("syscall(425, 1, 0)", 38),  # io_uring_setup
        ("syscall(435, 0, 0)", 38),  # clone3
        ("keyctl(0, 0, 0, 0, 0)", 1),
        ("chroot(b'/tmp')", 1),
    ],
)
def test_system_calls_are_refused(isolated: Inside, call: str, code: int) -> None:
    name, _, arguments = call.partition("(")
    numbers = {"keyctl": 250}
    spelt = f"syscall({numbers[name]}, {arguments}" if name in numbers else call

    async def body(box: Sandbox) -> None:
        source = f"import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.{spelt}, ctypes.get_errno())"
        assert (await box.python(source)).stdout.decode() == f"-1 {code}\n"
        status = await box.exec(["grep", "-E", "^(Seccomp|NoNewPrivs|CapEff):", "/proc/self/status"])
        assert status.stdout.split() == [b"CapEff:", b"0" * 16, b"NoNewPrivs:", b"1", b"Seccomp:", b"2"]

    isolated(body)


def test_sandboxes_do_not_see_each_other(strong: AgentProvider, spec: Callable[..., Any]) -> None:

    async def body() -> None:
        one, two = [await strong.open(spec(strong.name)) for _ in range(2)]
        await one.exec(["sh", "-c", "echo 1 > /tmp/x; echo 1 > /workspace/x; echo 1 > /dev/shm/x"])
        seen = await two.exec(["sh", "-c", "ls -A /tmp /workspace /dev/shm | grep x"])
        assert seen.stdout == b""
        await strong.aclose()

    asyncio.run(body())


def test_a_private_toolbelt_of_root_is_reachable_inside_and_private_outside(isolated: Inside, tmp_path: Path) -> None:
    private = tmp_path / "private"
    belt = private / "belt"
    belt.mkdir(parents=True)
    (belt / "tool.txt").write_text("tool")
    (private / "other.txt").write_text("hush")
    private.chmod(0o700)

    async def body(box: Sandbox) -> None:
        assert (await box.exec(["cat", "/toolbelt/tool.txt"])).stdout == b"tool"
        assert (await box.exec(["sh", "-c", "echo 1 > /toolbelt/new"])).rc != 0
        assert (await box.exec(["ls", "/toolbelt/.."])).stdout.find(b"other.txt") == -1

    isolated(body, toolbelt=str(belt))
    assert (private / "other.txt").read_text() == "hush" and stat.S_IMODE(private.stat().st_mode) == 0o700
