"""Powers over processes: limits of a child, a sweep that leaves nobody, and being unreadable to them."""

# Hot loops over /proc.
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Iterator

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PAGE = resource.getpagesize()


def set_dumpable(value: bool) -> None:
    """Let or don't let processes of the same user trace this one and read its memory and handles."""
    _prctl(_PR_SET_DUMPABLE, int(value))


def become_subreaper() -> None:
    """Make orphans below this process its children, as they'd be below a first process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if function is not None:
        function(option, value, 0, 0, 0)


def limit_process(pids: int, disk: int, open_files: int) -> None:
    """Limit the calling process and all below it; `pids` 0 leaves their number alone."""
    _limit(resource.RLIMIT_FSIZE, disk)
    _limit(resource.RLIMIT_NOFILE, open_files)
    _limit(resource.RLIMIT_CORE, 0)
    if pids:
        _limit(resource.RLIMIT_NPROC, pids + 1)  # the agent itself counts


def limit_memory(size: int) -> None:
    """Limit the address space of the calling process and of each one below it."""
    _limit(resource.RLIMIT_AS, size)


def _limit(kind: int, value: int) -> None:
    """Set soft and hard limit; one that is lower already stays."""
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def address_space() -> int:
    """Return the size of this process's address space: what a forked child starts with."""
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[0]) * _PAGE
    except OSError:
        return 1 << 30


class Usage:
    """What the reaped processes used, and how the main one ended."""

    def __init__(self, main: int) -> None:
        self.main = main
        self.status: int | None = None
        self.cpu_s = 0.0
        self.max_rss = 0

    def reap(self, *, block: bool = False) -> None:
        """Take in all processes that ended; with `block` wait until no child is left."""
        while True:
            try:
                pid, status, used = os.wait4(-1, 0 if block else os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.status = status
            self.cpu_s += used.ru_utime + used.ru_stime
            self.max_rss = max(self.max_rss, used.ru_maxrss * 1024)


def sweep(usage: Usage, *, namespace: bool) -> None:
    """Kill all other processes of the namespace, or all descendants, and wait until they're gone."""
    if namespace:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        usage.reap(block=True)
        return
    while victims := list(_descendants()):
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        usage.reap()
    usage.reap(block=True)


def _descendants() -> Iterator[int]:
    parents = {pid: parent for pid, (parent, state) in _processes() if state != "Z"}
    for pid in parents:
        above = parents.get(pid)
        while above is not None and above != os.getpid():
            above = parents.get(above)
        if above is not None:
            yield pid


def _processes() -> Iterator[tuple[int, tuple[int, str]]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", errors="replace") as stream:
                    fields = stream.read().rpartition(")")[2].split()
            except OSError:
                continue
            yield int(name), (int(fields[1]), fields[0])


def memory_of_others(*, namespace: bool) -> int:
    """Return the resident anonymous memory of all processes below this one; shared pages are shared out."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()] if namespace else list(_descendants())
    return sum(_memory(pid) for pid in pids if pid != os.getpid())


def _memory(pid: int) -> int:
    """Return the proportional memory of one process: precise, and readable as we share its user."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as stream:
            for line in stream:
                if line.startswith(b"Pss_Anon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # it ended, or hides itself; its own limit still holds
    return 0


def first_to_go(pid: int) -> None:
    """Have the kernel, when a limit on all memory is met, choose `pid` and its children before the agent."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as stream:
        stream.write("1000")


def oom_kills() -> int:
    """Return how many processes of this sandbox's control group were killed for memory, as far as it can be seen."""
    for place in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(place) as stream:
                told = dict(line.split() for line in stream)
        except (OSError, ValueError):
            continue
        return int(told.get("oom_kill", 0))
    return 0
