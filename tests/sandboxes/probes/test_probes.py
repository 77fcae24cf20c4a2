"""The 39 abuses, tried for real: stopped by the strong backends, and most get through where there is none.

What runs inside is `inside.txt`: bounded, and harmless even without any sandbox.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import OutputLimit
from bat_core.hooks.sandbox import Sandbox
from bat_core.sandboxes.provider import AgentProvider

Inside = Callable[..., Any]
Arguments = Callable[[Any], dict[str, Any]]
HOST_PLACES = ("/usr/local/lib", "/etc", "/var/tmp")
DIRECT: dict[str, tuple[str, Arguments]] = {
    "host_file_read": ("host_file_read", lambda b: {"paths": [b.secret], "token": b.token}),
    "host_rootonly_read": ("host_file_read", lambda b: {"paths": [f"{b.folder}/root_only.txt"], "token": b.token}),
    "grader_private_read": (
        "host_file_read",
        lambda b: {"paths": [f"{b.folder}/grader/expected.json", "../grader/expected.json"], "token": b.token},
    ),
    "host_etc": ("host_etc", lambda b: {}),
    "env_secret": ("env_secret", lambda b: {"token": b.token}),
    "proc_leak": ("proc_leak", lambda b: {"marker": b.marker, "hostpath": str(b.folder)}),
    "kernel_info": ("kernel_info", lambda b: {"hostname": socket.gethostname()}),
    "write_outside": ("write_outside", lambda b: {"dirs": [f"{b.folder}/drop", *HOST_PLACES], "marker": b.marker}),
    "grader_tamper": (
        "grader_tamper",
        lambda b: {"files": [b.grader, f"{b.folder}/grader/.git/HEAD", "../grader/test_it.py"], "marker": b.marker},
    ),
    "escape_files": ("escape_files", lambda b: {}),
    "net_loopback": ("net_loopback", lambda b: {"port": b.port}),
    "net_route": ("net_route", lambda b: {}),
    "unix_sockets": ("unix_sockets", lambda b: {"abstract": b.abstract, "path": f"{b.folder}/engine.sock"}),
    "odd_sockets": ("odd_sockets", lambda b: {}),
    "ipc_shm": ("ipc_shm", lambda b: {"key": b.key}),
    "dev_shm": ("dev_shm", lambda b: {"devshm": b.shared}),
    "fork_bomb": ("fork_bomb", lambda b: {"n": 300}),
    "memory_bomb": ("memory_bomb", lambda b: {"mb": 640}),
    "memory_bomb_shm": ("memory_bomb_shm", lambda b: {"mb": 400}),
    "disk_fill": ("disk_fill", lambda b: {"mb": 300}),
    "inode_bomb": ("inode_bomb", lambda b: {"n": 30_000}),
    "fd_bomb": ("fd_bomb", lambda b: {"n": 5000}),
    "setuid_root": ("setuid_root", lambda b: {}),
    "caps": ("caps", lambda b: {}),
    "devices": ("devices", lambda b: {}),
    "userns": ("userns", lambda b: {}),
    "ptrace_kill": ("ptrace_kill", lambda b: {"victim": b.victim}),
    "kernel_surface": ("kernel_surface", lambda b: {}),
    "seccomp_mode": ("seccomp_mode", lambda b: {}),
}
THROUGH_LANDLOCK = {"dev_shm", "disk_fill", "inode_bomb", "kernel_info"}
UNSEEN_BY_LANDLOCK = {
    "env_secret",
    "proc_leak",
    "setuid_root",
    "caps",
    "seccomp_mode",
}  # they read /proc, which is shut
THROUGH_WITHOUT = (
    "host_file_read", "host_rootonly_read", "grader_private_read", "host_etc", "env_secret", "proc_leak",
    "kernel_info", "net_loopback", "unix_sockets", "ipc_shm", "dev_shm", "userns", "ptrace_kill", "seccomp_mode",
)  # fmt: skip


@pytest.mark.parametrize("name", DIRECT)
def test_an_abuse_is_stopped(isolated: Inside, bait: Any, tools: Any, limits: Any, name: str) -> None:
    probe, verdict = tools
    function, arguments = DIRECT[name]

    async def body(box: Sandbox) -> None:
        reached, detail = verdict(await probe(box, function, **arguments(bait)))
        if name == "write_outside":  # writing is no harm, being seen on the host is
            places = [f"{bait.folder}/drop", *HOST_PLACES]
            reached = any((Path(place) / f"probe_{bait.marker}").exists() for place in places)
        assert not reached, detail
        assert (await box.exec(["true"])).rc == 0, "the sandbox goes on"

    isolated(body, limits=limits)
    assert "tampered" not in Path(bait.grader).read_text()


@pytest.mark.parametrize("name", sorted(set(DIRECT) - UNSEEN_BY_LANDLOCK - THROUGH_LANDLOCK))
def test_landlock_stops_most(insides: Any, bait: Any, tools: Any, limits: Any, name: str) -> None:
    probe, verdict = tools
    function, arguments = DIRECT[name]

    async def body(box: Sandbox) -> None:
        reached, detail = verdict(await probe(box, function, **arguments(bait)))
        assert not reached, detail

    insides["landlock"](body, limits=limits)


@pytest.mark.parametrize("name", sorted(THROUGH_LANDLOCK))
def test_what_landlock_lets_through_is_what_it_does_not_guarantee(
    insides: Any, bait: Any, tools: Any, limits: Any, name: str
) -> None:
    probe, verdict = tools
    function, arguments = DIRECT[name]

    async def body(box: Sandbox) -> None:
        assert verdict(await probe(box, function, **arguments(bait)))[0]

    insides["landlock"](body, limits=limits)


@pytest.mark.parametrize("name", THROUGH_WITHOUT)
def test_without_isolation_the_same_abuse_gets_through(
    insides: Any, bait: Any, tools: Any, limits: Any, name: str
) -> None:
    probe, verdict = tools
    function, arguments = DIRECT[name]

    async def body(box: Sandbox) -> None:
        reached, detail = verdict(await probe(box, function, **arguments(bait)))
        assert reached, detail

    insides["unsafe-process"](body, limits=limits)


def named(name: str) -> list[str]:
    """Return the processes of the whole machine with this name; a zombie is dead."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text().strip() == name:
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                found += [path.name] if state != "Z" else []
        except OSError:
            continue
    return found


def test_timeout_ignoring_sigterm(isolated: Inside, tools: Any, limits: Any) -> None:
    async def body(box: Sandbox) -> None:
        began = time.monotonic()
        result = await tools[0](box, "spin", timeout=1.5, s=25)
        assert result.status == "timeout" and time.monotonic() - began < 6 and not named("bat-spin")

    isolated(body, limits=limits)


def test_stdout_holder(isolated: Inside, tools: Any, limits: Any) -> None:
    async def body(box: Sandbox) -> None:
        began = time.monotonic()
        result = await tools[0](box, "stdout_holder", timeout=6, s=12)
        assert result.status == "exited" and time.monotonic() - began < 5

    isolated(body, limits=limits)


def test_huge_stdout(isolated: Inside, tools: Any, limits: Any) -> None:
    async def body(box: Sandbox) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await tools[0](box, "huge_stdout", mb=400)
        assert result.stdout_total == 400 << 20 and len(result.stdout) == 1 << 20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000, "kilobytes of host memory"

    isolated(body, limits=limits)


def test_binary_output(isolated: Inside, tools: Any, limits: Any) -> None:
    async def body(box: Sandbox) -> None:
        result = await tools[0](box, "binary_output")
        assert result.rc == 7 and result.stdout == b"\xff\xfe\x00\x1b[2J\x1b]0;pwn\x07\xed\xa0\x80\r\n\x80" * 3

    isolated(body, limits=limits)


def test_big_argument(isolated: Inside, limits: Any) -> None:
    async def body(box: Sandbox) -> None:
        shown = ["python3", "-c", "import sys; print(len(sys.argv[1]))"]
        assert (await box.exec([*shown, "x" * 120_000])).stdout == b"120000\n"
        assert (await box.exec([*shown, "x" * 200_000])).rc == 126

    isolated(body, limits=limits)


def test_poisoned_workspace(strong: AgentProvider, bait: Any, tools: Any, spec: Any, limits: Any) -> None:
    """The grader works in a fresh sandbox restored from the seal, and what was planted there is never run."""

    async def body() -> None:
        box = await strong.open(spec(strong.name, limits=limits, preload=("numpy",)))
        await tools[0](box, "plant_poison", marker=bait.marker)
        sealed = await box.snapshot()
        await box.stop()
        fresh = await strong.open(spec(strong.name, limits=limits, preload=("numpy",)))
        await fresh.restore(sealed)
        warm = await fresh.python("import json, numpy, fractions\nprint(json.dumps([1]), numpy.__version__ > '')")
        assert warm.stdout == b"[1] True\n"
        cold = await fresh.exec(["python3", "-I", "-c", "import json, sys; print(json.dumps([1]), sys.flags.isolated)"])
        assert cold.stdout == b"[1] 1\n"
        assert (await fresh.exec(["sh", "-c", "tar --version >/dev/null && echo real"])).stdout == b"real\n"
        names = [entry.path for entry in await fresh.list()]
        assert "json.py" in names and not [name for name in names if name.startswith("poisoned")]
        assert await fresh.snapshot() == sealed
        await fresh.stop()

    asyncio.run(body())


def test_cross_sandbox(strong: AgentProvider, bait: Any, tools: Any, spec: Any, limits: Any) -> None:
    probe, verdict = tools

    async def body() -> None:
        one, two = [await strong.open(spec(strong.name, limits=limits)) for _ in range(2)]
        await probe(one, "cross_write", marker=bait.marker)
        assert not verdict(await probe(two, "cross_read", marker=bait.marker))[0]
        await one.restore(strong.store.put_files({}))
        assert not verdict(await probe(one, "cross_read", marker=bait.marker))[0], "nor the next rollout of the same"
        await strong.aclose()

    asyncio.run(body())
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        assert not (Path(place) / f"cross_{bait.marker}").exists()


@pytest.mark.parametrize("depth", [30, 60])
def test_collect_evil(isolated: Any, bait: Any, tools: Any, limits: Any, depth: int) -> None:
    async def body(box: Sandbox) -> None:
        arguments = {"secret": bait.secret, "grader": bait.grader, "sparse": 3 << 30, "depth": depth}
        await tools[0](box, "plant_evil", **arguments)
        if depth > 50:
            with pytest.raises(OutputLimit):  # said to be the policy's doing, and nothing is read
                await box.collect()
        else:
            files = await box.collect()
            assert len(files) > 2000 and not [path for path, data in files.items() if bait.token.encode() in data]
            assert not {"sym_file", "sym_dir", "sym_up", "fifo", "sock", "hard", "dev"} & set(files)
            ref = await box.snapshot()
            assert {"sym_file", "sym_up", "fifo"} <= set(isolated.store.odd(ref))
        await box.restore(isolated.store.put_files({"a": b"1"}))
        assert dict(await box.collect()) == {"a": b"1"}

    isolated(body, limits=limits)


def test_background_survivor_and_workspace_left(
    strong: AgentProvider, tools: Any, spec: Any, limits: Any, census: Any
) -> None:
    async def body() -> None:
        box = await strong.open(spec(strong.name, limits=limits))
        await tools[0](box, "survivor", s=20)
        assert not named("bat-surv"), "not even until the next call"
        await box.stop()
        await strong.aclose()

    asyncio.run(body())
    before = census(strong)
    asyncio.run(body())
    assert census(strong) == before and not named("bat-surv")
