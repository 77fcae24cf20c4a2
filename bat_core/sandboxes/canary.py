"""A real sandbox that tries what it must not be able to do; what it finds decides, not that a binary is there."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from bat_core.errors import SandboxError
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import DEFAULT_GUARANTEES, Capabilities, ExecResult, Guarantee, Limits, SandboxSpec
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
with open("/proc/self/status") as stream:
    status = dict(line.split(":", 1) for line in stream)
json.dump({
    "fs": tried(lambda: open(@BAIT@)) or tried(lambda: open("/etc/bat-canary", "w")),
    "net": len(open("/proc/net/dev").read().splitlines()) > 3 or tried(vsock),
    "proc": os.path.exists("/proc/@PID@") or tried(lambda: open("/proc/1/environ").read()),
    "env": bool(set(os.environ) - set(@NAMES@)),
    "syscalls": status["Seccomp"].strip() != "2" or tried(namespace),
}, sys.stdout)
"""
_NAMES = {*bare_environment("", ""), "PWD", "OLDPWD", "SHLVL", "LC_CTYPE", "_"}
_FEW = 99  # a sandbox has process ids of its own up to about here


async def examine(provider: AgentProvider, remedy: str) -> Capabilities:
    """Return what `provider` can do on this machine, and in one line why not."""
    try:
        sandbox = await provider.open(SandboxSpec(limits=Limits(exec_s=20, disk=16 << 20), require=frozenset()))
        try:
            broken = await _broken(sandbox)
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
    code = _TRIES.replace("@BAIT@", repr(bait)).replace("@NAMES@", repr(sorted(_NAMES)))
    code = code.replace("@PID@", str(os.getpid() if os.getpid() > _FEW else 1 << 22))
    try:
        answer = await sandbox.exec(["python3", "-I", "-c", code])
        late = await _timeout(sandbox)
    finally:
        Path(bait).unlink(missing_ok=True)
    if answer.status != "exited" or answer.rc != 0:
        raise SandboxError(f"the canary in {sandbox.provider} failed: {answer.stderr.decode(errors='replace')[-300:]}")
    found = json.loads(answer.stdout)
    broken = {Guarantee(name) for name, got_through in found.items() if got_through}
    return frozenset(broken if late else broken | {Guarantee.NO_SURVIVORS}) & DEFAULT_GUARANTEES


async def _timeout(sandbox: Sandbox) -> bool:
    """Whether a time-out ends a command that detaches itself and ignores the polite signal."""
    began = time.monotonic()
    late: ExecResult = await sandbox.exec(["sh", "-c", "trap '' TERM; setsid sleep 30 & sleep 30"], timeout=0.2)
    return late.status == "timeout" and time.monotonic() - began < 5
