"""What a sandbox promises, is asked for, and answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from bat_core.model.base import Value


class Guarantee(StrEnum):
    """What a backend can promise about the code that runs in it."""

    FS = "fs"
    NET = "net"
    PROC = "proc"
    ENV = "env"
    MEM_TOTAL = "mem_total"
    MEM_PROC = "mem_proc"
    PIDS = "pids"
    DISK = "disk"
    INODES = "inodes"
    SYSCALLS = "syscalls"
    NO_SURVIVORS = "no_survivors"
    KERNEL = "kernel"


DEFAULT_GUARANTEES: frozenset[Guarantee] = frozenset(
    {
        Guarantee.FS,
        Guarantee.NET,
        Guarantee.PROC,
        Guarantee.ENV,
        Guarantee.MEM_PROC,
        Guarantee.PIDS,
        Guarantee.DISK,
        Guarantee.SYSCALLS,
        Guarantee.NO_SURVIVORS,
    }
)


class Limits(Value):
    """Limits of one sandbox. Seconds, bytes and counts; `cpus` are whole ones or parts, None leaves them alone."""

    exec_s: float = Field(default=60.0, gt=0)
    lifetime_s: float = Field(default=3600.0, gt=0)
    memory: int = Field(default=512 << 20, gt=0)
    pids: int = Field(default=64, gt=0)
    disk: int = Field(default=256 << 20, gt=0)
    inodes: int = Field(default=20_000, gt=0)
    open_files: int = Field(default=1024, gt=0)
    output: int = Field(default=1 << 20, gt=0)
    read: int = Field(default=32 << 20, gt=0)
    cpus: float | None = Field(default=None, gt=0)


class SandboxSpec(Value):
    """What a domain asks of a sandbox.

    Attributes:
        image: Container image; backends that use the host's root ignore it.
        env: Environment of every command; it starts empty.
        toolbelt: Host folder mounted read-only at `/toolbelt`; its `bin` leads PATH, itself is on PYTHONPATH.
        preload: Python modules that the in-sandbox interpreter keeps imported, so that a call needn't.
        limits: Memory, processes, time, disk and output.
        require: Guarantees without which opening is refused.
    """

    image: str | None = None
    env: dict[str, str] = {}
    toolbelt: str | None = None
    preload: tuple[str, ...] = ()
    limits: Limits = Limits()
    require: frozenset[Guarantee] = DEFAULT_GUARANTEES


class Capabilities(Value):
    """What a canary found: whether the backend works, what it guarantees, and why not."""

    provider: str
    works: bool
    guarantees: frozenset[Guarantee] = frozenset()
    detail: str = ""


class SnapshotRef(Value):
    """A sealed workspace: `root` is the hash of its tree, the key of its blob in the content store."""

    root: str
    bytes: int = 0
    files: int = 0


class Entry(Value):
    """One entry of a workspace. Other kinds than `file` and `dir` are listed, never followed."""

    path: str
    kind: Literal["file", "dir", "link", "other"]
    size: int = 0


class ExecResult(Value):
    """What one command did. A limit that the command hits is a result, not an error.

    `stdout` and `stderr` hold at most `Limits.output` bytes; the totals count everything. `ws_before` and
    `ws_after` are tree hashes of the workspace, `out_sha`/`err_sha` hashes of the whole streams.
    """

    status: Literal["exited", "timeout", "oom", "killed"]
    rc: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_total: int = 0
    stderr_total: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    max_rss: int = 0
    out_sha: str = ""
    err_sha: str = ""
    ws_before: str = ""
    ws_after: str = ""
