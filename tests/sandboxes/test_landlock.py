"""The fallback: confined, declared to be less, and chosen only where less is enough."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import CapabilityError, SandboxUnavailable
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import Capabilities, Guarantee, SandboxSpec
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
from bat_core.sandboxes.choose import choose, chosen
from bat_core.sandboxes.landlock import LandlockProvider
from bat_core.sandboxes.owner import this_process
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

LESS = frozenset({Guarantee.NET, Guarantee.ENV, Guarantee.SYSCALLS, Guarantee.NO_SURVIVORS})


class ShutBubblewrap(BubblewrapProvider):
    """A machine on which user namespaces are shut."""

    async def probe(self) -> Capabilities:
        return Capabilities(provider="bubblewrap", works=False, detail="setting up uid map: Permission denied")


CANDIDATES: dict[str, Any] = {
    "bubblewrap": ShutBubblewrap, "landlock": LandlockProvider, "unsafe-process": UnsafeProcessProvider,
}  # fmt: skip


def test_the_canary_finds_what_it_promises_and_no_more(tmp_path: Path) -> None:
    found = asyncio.run(LandlockProvider(tmp_path).probe())
    assert found.works and found.detail == ""
    own = {Guarantee.FS, Guarantee.PIDS} if os.geteuid() == 0 else set()
    assert found.guarantees == LESS | {Guarantee.MEM_PROC} | own


def test_auto_falls_back_only_where_that_is_enough(tmp_path: Path) -> None:
    choice = asyncio.run(chosen("auto", CANDIDATES, tmp_path, SandboxSpec(require=LESS)))
    assert isinstance(choice.provider, LandlockProvider)
    assert "landlock, which does not guarantee disk" in choice.said and "uid map: Permission denied" in choice.said
    with pytest.raises(SandboxUnavailable, match=r"landlock can't guarantee disk, .*proc") as caught:
        asyncio.run(choose("auto", CANDIDATES, tmp_path, SandboxSpec()))
    assert "uid map" in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(CapabilityError, match="landlock can't guarantee disk"):
        asyncio.run(choose("landlock", CANDIDATES, tmp_path, SandboxSpec()))


def test_a_kernel_without_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bat_core.sandboxes.landlock.landlock_version", lambda: 0)
    found = asyncio.run(LandlockProvider(tmp_path).probe())
    assert not found.works and "no Landlock; use Docker or bubblewrap" in found.detail


def test_neither_files_nor_sockets_nor_signals_lead_out(insides: Any, tmp_path: Path) -> None:
    bait = tmp_path / "bait"
    bait.write_text("hush")
    bait.chmod(0o666)
    victim = subprocess.Popen(["sleep", "60"])
    code = f"""
import os, socket
def tried(act):
    try:
        act()
        return True
    except OSError:
        return False
print([tried(act) for act in (
    lambda: open({str(bait)!r}), lambda: open({str(bait)!r}, "a"), lambda: os.listdir("/proc"), lambda: os.listdir("/"),
    lambda: os.kill({victim.pid}, 0), lambda: os.kill(os.getppid(), 0), lambda: open("/tmp/bat-out", "w"),
    lambda: socket.socket(socket.AF_UNIX), lambda: socket.socket(socket.AF_INET), lambda: os.open("/dev/kmsg", 0),
)], tried(socket.socketpair))
"""

    async def body(box: Sandbox) -> None:
        for result in (await box.python(code), await box.exec(["python3", "-c", code])):
            assert result.stdout.decode() == f"{[False] * 10} True\n", result.stderr

    insides["landlock"](body)
    victim.kill()
    victim.wait()
    assert bait.read_text() == "hush"


def test_only_folders_of_dead_owners_are_reaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = this_process()
    names = {
        one: tmp_path / f"bat-landlock-{str(owner).replace('/', '+')}~x_{one}"
        for one, owner in {"dead": ours._replace(start="1"), "alive": ours, "far": ours._replace(host="far")}.items()
    }
    for folder in names.values():
        folder.mkdir()
    assert asyncio.run(LandlockProvider(tmp_path / "store").reap()) == [str(names["dead"])]
    assert names["alive"].is_dir() and names["far"].is_dir()
