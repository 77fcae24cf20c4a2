"""Who made something that may outlive its maker: host, boot, process and that process's start."""

from __future__ import annotations

import functools
import os
import socket
from pathlib import Path
from typing import NamedTuple


class Owner(NamedTuple):
    """One process of one boot of one host; a number that is used again has another start."""

    host: str
    boot: str
    pid: int
    start: str

    def __str__(self) -> str:
        """The four parts with slashes between them."""
        return f"{self.host}/{self.boot}/{self.pid}/{self.start}"

    @property
    def dead(self) -> bool:
        """Whether it is certainly gone: one of another host never is."""
        if self.host != socket.gethostname():
            return False
        return self.boot != _boot() or _start_of(self.pid) != self.start


def this_process() -> Owner:
    """Return the owner that this very process is."""
    pid = os.getpid()
    return Owner(socket.gethostname(), _boot(), pid, _start_of(pid))


def parse(text: str) -> Owner | None:
    """Return the owner that `str` wrote, or None for anything else."""
    parts = text.split("/")
    if len(parts) != 4 or not parts[2].isdigit():
        return None
    return Owner(parts[0], parts[1], int(parts[2]), parts[3])


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def _start_of(pid: int) -> str:
    """Return when `pid` began, in the kernel's ticks, or nothing if it isn't there."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
