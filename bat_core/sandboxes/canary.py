"""A real sandbox that tries what it must not be able to do; what it finds decides, not that a binary is there."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bat_core.errors import SandboxError
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import Capabilities, ExecResult, Guarantee, Limits, SandboxSpec
from bat_core.sandboxes.hostpython import bare_environment
from bat_core.sandboxes.provider import AgentProvider

_TRIES = """
import ctypes, json, os, socket, sys
def tried(act):
    try:
        act()
    except OSError:
        return False
    return True
def vsock():
    socket.socket(40, socket.SOCK_STREAM)
def namespace():
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
        raise OSError("refused")
def told(path):
    try:
        with open(path) as stream:
            return stream.read()
    except OSError:
        return ""
status = dict(line.split(":", 1) for line in told("/proc/self/status").splitlines())
json.dump({
    "fs": tried(lambda: open(@BAIT@)) or tried(lambda: open("/etc/bat-canary", "w")),
    "net": @PORT@ and tried(lambda: socket.create_connection(("127.0.0.1", @PORT@), 2)) or tried(vsock),
    "proc": os.path.exists("/proc/@PID@") or bool(told("/proc/1/environ")) or tried(lambda: os.kill(@PID@, 0)),
    "env": bool(set(os.environ) - set(@NAMES@)),
    "syscalls": status.get("Seccomp", "2").strip() != "2" or tried(namespace),
    "kernel": told("/proc/sys/kernel/random/boot_id").strip() == @BOOT@,
}, sys.stdout)
"""
_GREED = """
import json, os, sys, time
def memory():
    try:
        return bool(bytearray(@MEMORY@))
    except MemoryError:
        return False
def fills(place, files, size):
    made = []
    try:
        for number in range(files):
            made.append(f"{place}/canary{number}")
            with open(made[-1], "wb") as stream:
                stream.write(bytes(size))
        return True
    except OSError:
        return False
    finally:
        for path in made:
            if os.path.exists(path):
                os.unlink(path)
def children():
    for number in range(@PIDS@):
        try:
            if os.fork() == 0:
                time.sleep(30)
        except OSError:
            return False
    return True
places = [place for place in ("/workspace", "/tmp", "/dev/shm") if os.access(place, os.W_OK)]
found = {"mem_proc": memory(), "disk": any(fills(place, 9, @DISK@ // 8) for place in places)}
if @INODES@:
    found["inodes"] = any(fills(place, @INODES@, 0) for place in places)
found["pids"] = children()
json.dump(found, sys.stdout)
sys.stdout.flush()
os._exit(0)
"""
_NAMES = {*bare_environment("", ""), "PWD", "OLDPWD", "SHLVL", "LC_CTYPE", "_", "TMPDIR"}
_FEW = 99  # a sandbox has process ids of its own up to about here
_TIGHT = Limits(exec_s=20, disk=16 << 20, memory=256 << 20, pids=24, inodes=1500)


async def examine(provider: AgentProvider, remedy: str) -> Capabilities:
    """Return what `provider` can do on this machine, and in one line why not."""
    try:
        sandbox = await provider.open(SandboxSpec(limits=_TIGHT, require=frozenset()))
        try:
            broken = await _broken(sandbox) | await _greedy(sandbox)
        finally:
            await sandbox.stop()
    except SandboxError as error:
        detail = str(error) if error.remedy == remedy else f"{error}; {remedy}"
        return Capabilities(provider=provider.name, works=False, detail=detail)
    detail = f"the canary got through: {', '.join(sorted(broken))}" if broken else ""
    guarantees = provider.guarantees - broken
    return Capabilities(provider=provider.name, works=True, guarantees=guarantees, detail=detail)


async def _broken(sandbox: Sandbox) -> frozenset[Guarantee]:
    """Return the guarantees that the canary saw broken."""
    handle, bait = tempfile.mkstemp(prefix="bat-canary-")
    os.close(handle)
    Path(bait).chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = {
            "BAIT": bait,
            "NAMES": sorted(_NAMES),
            "PID": os.getpid() if os.getpid() > _FEW else 1 << 22,
            "PORT": server.getsockname()[1],
            "BOOT": _boot_id(),
        }
        try:
            found = await _answer(sandbox, _TRIES, words)
            late = await _timeout(sandbox)
        finally:
            Path(bait).unlink(missing_ok=True)
    broken = found if late else found | {Guarantee.NO_SURVIVORS}
    if Guarantee.KERNEL in sandbox.guarantees - broken:
        broken -= {Guarantee.SYSCALLS}  # no call of a command reaches the host's kernel: there's nothing to filter
    return broken & sandbox.guarantees


async def _greedy(sandbox: Sandbox) -> frozenset[Guarantee]:
    """Return the guarantees on amounts that the canary saw broken."""
    counted = Guarantee.INODES in sandbox.guarantees
    words = {
        "MEMORY": _TIGHT.memory + (64 << 20),
        "PIDS": _TIGHT.pids * 3,
        "DISK": _TIGHT.disk,
        "INODES": _TIGHT.inodes + 10 if counted else 0,
    }
    asked = {Guarantee.MEM_PROC, Guarantee.DISK, Guarantee.INODES, Guarantee.PIDS} & sandbox.guarantees
    return await _answer(sandbox, _GREED, words) & asked if asked else frozenset()


async def _answer(sandbox: Sandbox, program: str, words: Mapping[str, object]) -> frozenset[Guarantee]:
    """Run `program` with `words` filled in; return the guarantees that it says it got past."""
    for name, value in words.items():
        program = program.replace(f"@{name}@", str(value) if name == "PID" else repr(value))
    answer = await sandbox.exec(["python3", "-I", "-c", program])
    if answer.status != "exited" or answer.rc != 0:
        raise SandboxError(f"the canary in {sandbox.provider} failed: {answer.stderr.decode(errors='replace')[-300:]}")
    return frozenset(Guarantee(name) for name, got_through in json.loads(answer.stdout).items() if got_through)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


async def _timeout(sandbox: Sandbox) -> bool:
    """Whether a time-out ends a command that detaches itself and ignores the polite signal."""
    began = time.monotonic()
    late: ExecResult = await sandbox.exec(["sh", "-c", "trap '' TERM; setsid sleep 30 & sleep 30"], timeout=0.2)
    return late.status == "timeout" and time.monotonic() - began < 5
