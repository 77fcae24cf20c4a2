"""Run one child to its end: bounded output, hashed whole; a deadline; and nobody left afterwards."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import time
from typing import Any, Literal, NamedTuple

from bat_core.sandboxes.inside.launch import Launcher
from bat_core.sandboxes.inside.process import Usage, first_to_go, memory_of_others, oom_kills, sweep

_CHUNK = 1 << 18
_WATCH_S = 0.05


class Rules(NamedTuple):
    """What holds for every child of this sandbox.

    Attributes:
        memory: Bytes that all processes together may hold.
        output: Bytes of each stream that are kept.
        inodes: Entries that each of `places` may have.
        places: File systems of the sandbox's own.
        namespace: Whether all other processes in sight are the sandbox's.
        hangup: Handle on which the loss of the host shows.
    """

    memory: int
    output: int
    inodes: int
    places: tuple[str, ...]
    namespace: bool
    hangup: int


class Outcome(NamedTuple):
    """How it ended; `fields` are those of an `ExecResult` but for the output itself."""

    fields: dict[str, Any]
    stdout: bytes
    stderr: bytes


class _Tap:
    """The reading end of one output stream: keeps the head, counts and hashes everything."""

    def __init__(self, handle: int, keep: int) -> None:
        os.set_blocking(handle, False)
        self.handle = handle
        self.keep = keep
        self.kept = bytearray()
        self.total = 0
        self.sha = hashlib.sha256()
        self.open = True

    def pull(self) -> bool:
        """Read once; False when there's nothing more for now."""
        try:
            data = os.read(self.handle, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.open = False
            return False
        self.sha.update(data)
        self.total += len(data)
        if len(self.kept) < self.keep:
            self.kept += data[: self.keep - len(self.kept)]
        return True


class _Feed:
    """The writing end of standard input."""

    def __init__(self, handle: int, data: bytes | bytearray) -> None:
        os.set_blocking(handle, False)
        self.handle = handle
        self.left = memoryview(data)

    def push(self) -> bool:
        """Write once; False when all is written or nobody reads any more."""
        try:
            self.left = self.left[os.write(self.handle, self.left) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(self.left)

    def close(self) -> None:
        """Let the reader see the end; twice is fine."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


def run(launch: Launcher, stdin: bytes | bytearray, timeout: float, rules: Rules) -> Outcome:
    """Launch a child and supervise it until it and all that it started are gone."""
    began, killed = time.monotonic(), oom_kills() if rules.namespace else 0
    pid, feed, taps = _launch(launch, stdin, rules.output)
    usage = Usage(pid)
    if rules.namespace:
        first_to_go(pid)
    try:
        verdict: str = _supervise(usage, feed, taps, began + timeout, rules)
        sweep(usage, namespace=rules.namespace)
        for tap in taps:
            while tap.pull():
                pass
    finally:
        for tap in taps:
            os.close(tap.handle)
        if feed:
            feed.close()
    if usage.status == signal.SIGKILL and rules.namespace and oom_kills() > killed:
        verdict = "oom"
    out, err = taps
    fields = {
        **_ending(verdict, usage.status),
        "stdout_total": out.total,
        "stderr_total": err.total,
        "wall_s": time.monotonic() - began,
        "cpu_s": usage.cpu_s,
        "max_rss": usage.max_rss,
        "out_sha": "sha256:" + out.sha.hexdigest(),
        "err_sha": "sha256:" + err.sha.hexdigest(),
    }
    return Outcome(fields, bytes(out.kept), bytes(err.kept))


def _ending(verdict: str, status: int | None) -> dict[str, Any]:
    """Return status and exit code: a signal is `killed` with its negative number, a limit has no code."""
    if verdict != "ended" or status is None:
        return {"status": verdict if verdict != "ended" else "killed", "rc": None}
    code = os.waitstatus_to_exitcode(status)
    return {"status": "exited" if code >= 0 else "killed", "rc": code}


def _launch(launch: Launcher, stdin: bytes | bytearray, keep: int) -> tuple[int, _Feed | None, tuple[_Tap, _Tap]]:
    out_r, out_w = os.pipe()
    err_r, err_w = os.pipe()
    in_r, in_w = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1)
    pid = launch((in_r, out_w, err_w))
    for handle in (in_r, out_w, err_w):
        os.close(handle)
    return pid, _Feed(in_w, stdin) if stdin else None, (_Tap(out_r, keep), _Tap(err_r, keep))


def _supervise(
    usage: Usage, feed: _Feed | None, taps: tuple[_Tap, _Tap], deadline: float, rules: Rules
) -> Literal["ended", "timeout", "oom", "killed"]:
    """Move data until the main child ends, time is up, memory is over, or the host is gone."""
    pidfd = _pidfd(usage.main)
    poller = _poller(pidfd, feed, taps, rules.hangup)
    next_watch = time.monotonic() + _WATCH_S
    try:
        while usage.status is None:
            now = time.monotonic()
            if now >= deadline:
                return "timeout"
            if now >= next_watch:
                usage.reap()
                if memory_of_others(namespace=rules.namespace) > rules.memory:
                    return "oom"
                if any(_inodes(place) > rules.inodes for place in rules.places):
                    return "killed"
                next_watch = time.monotonic() + _WATCH_S
            wait = min(deadline, next_watch) - now if pidfd >= 0 else 0.002
            events = poller.poll(max(0.0, wait) * 1000 + 0.5)
            if any(handle == rules.hangup for handle, _ in events):
                return "killed"
            _move(poller, [handle for handle, _ in events], feed, taps)
            if pidfd < 0 or any(handle == pidfd for handle, _ in events):
                usage.reap()
        return "ended"
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def _poller(pidfd: int, feed: _Feed | None, taps: tuple[_Tap, _Tap], hangup: int) -> select.poll:
    poller = select.poll()
    for handle in [tap.handle for tap in taps] + ([pidfd] if pidfd >= 0 else []):
        poller.register(handle, select.POLLIN)
    if feed:
        poller.register(feed.handle, select.POLLOUT)
    poller.register(hangup, 0)  # a hang-up is reported without being asked for
    return poller


def _move(poller: select.poll, ready: list[int], feed: _Feed | None, taps: tuple[_Tap, _Tap]) -> None:
    for tap in taps:
        if tap.handle in ready and not tap.pull() and not tap.open:
            poller.unregister(tap.handle)
    if feed and feed.handle in ready and not feed.push():
        poller.unregister(feed.handle)
        feed.close()


def _inodes(place: str) -> int:
    status = os.statvfs(place)
    return status.f_files - status.f_ffree


def _pidfd(pid: int) -> int:
    """Return a handle that becomes readable when `pid` ends, or -1 where there are none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
