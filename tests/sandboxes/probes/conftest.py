"""Bait for the probes: things of the host that a sandbox must not reach, all made here and removed at the end."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import ExecResult

INSIDE = (Path(__file__).parent / "inside.txt").read_text()
LIMITS = {"memory": 256 << 20, "pids": 64, "disk": 64 << 20, "inodes": 20_000, "open_files": 1024, "exec_s": 30.0}


class Bait(NamedTuple):
    """Where the things lie and what they hold."""

    token: str
    marker: str
    folder: Path
    port: int
    abstract: str
    victim: int
    shared: str
    key: int

    @property
    def secret(self) -> str:
        return str(self.folder / "host_secret.txt")

    @property
    def grader(self) -> str:
        return str(self.folder / "grader" / "test_it.py")


@pytest.fixture(scope="session")
def bait() -> Iterator[Bait]:
    token, marker = f"BAT{secrets.token_hex(8)}", f"mk{secrets.token_hex(5)}"
    folder = Path(tempfile.mkdtemp(prefix="bait-", dir="/var/tmp"))
    folder.chmod(0o755)
    _files(folder, token)
    servers = _servers(folder, marker)
    victim = subprocess.Popen(
        [sys.executable, "-c", f"import time; time.sleep(3600)  # {marker}"], env={"VICTIM": token}
    )
    shared = f"/dev/shm/{marker}"
    Path(shared).write_text(token)
    key = 0x4241_0000 | secrets.randbits(16)
    library = ctypes.CDLL(None, use_errno=True)
    segment = library.shmget(key, 4096, 0o1666)
    os.environ["BAT_PROBE_SECRET"] = token
    yield Bait(token, marker, folder, servers[0].getsockname()[1], f"bait-{marker}", victim.pid, shared, key)
    del os.environ["BAT_PROBE_SECRET"]
    library.shmctl(segment, 0, None)
    Path(shared).unlink()
    victim.kill()
    victim.wait()
    for server in servers:
        server.close()
    shutil.rmtree(folder, ignore_errors=True)


def _files(folder: Path, token: str) -> None:
    contents = {
        "host_secret.txt": (token, 0o644),
        "root_only.txt": (token, 0o600),
        "grader/expected.json": (json.dumps({"answer": token}), 0o644),
        "grader/test_it.py": ("def test(): pass\n", 0o666),
        "grader/.git/HEAD": ("ref: main\n", 0o666),
    }
    for name, (text, mode) in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
    (folder / "drop").mkdir()
    (folder / "drop").chmod(0o777)


def _servers(folder: Path, marker: str) -> list[socket.socket]:
    """Serve on loopback, on an abstract socket and on one with a path, all open to everybody."""
    loopback = socket.create_server(("127.0.0.1", 0))
    abstract, named = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0bait-{marker}")
    named.bind(str(folder / "engine.sock"))
    (folder / "engine.sock").chmod(0o666)
    for server in (loopback, abstract, named):
        server.listen(8)
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
    return [loopback, abstract, named]


def _serve(server: socket.socket) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return


Probe = Callable[..., Any]


async def probe(box: Sandbox, name: str, timeout: float = 30.0, **arguments: Any) -> ExecResult:
    """Run one of the functions of `inside.txt` in a sandbox."""
    return await box.exec(["python3", "-c", INSIDE, name, json.dumps(arguments)], timeout=timeout)


def verdict(result: ExecResult) -> tuple[bool, str]:
    """Return whether the abuse got through, as the probe itself says; one that was ended by a limit did not."""
    lines = [line for line in result.stdout.splitlines() if line.startswith(b'{"reached"')]
    if lines:
        found = json.loads(lines[-1])
        return bool(found["reached"]), str(found["detail"])
    assert result.status != "exited", f"no answer: {result.rc} {result.stdout[-200:]!r} {result.stderr[-300:]!r}"
    return False, result.status


@pytest.fixture
def tools() -> tuple[Any, Any]:
    return probe, verdict


@pytest.fixture
def limits() -> dict[str, Any]:
    return dict(LIMITS)
