"""Two ways to start a child on given streams: spawn a program, or fork this interpreter.

A fork copies the page tables of all preloaded modules, which costs milliseconds; a spawned program never needs them.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

Streams = tuple[int, int, int]
Launcher = Callable[[Streams], int]


def spawned(argv: Sequence[str], env: Mapping[str, str], memory: int) -> Launcher:
    """Return a launcher of the program `argv`; one that can't be started exits with 127 or 126, as in a shell."""

    def launch(streams: Streams) -> int:
        actions = [(os.POSIX_SPAWN_DUP2, handle, number) for number, handle in enumerate(streams)]
        ignored_here = [signal.SIGPIPE, signal.SIGXFSZ]
        try:
            program = _find(argv[0], env.get("PATH", os.defpath))
            pid = os.posix_spawn(program, list(argv), env, file_actions=actions, setsid=True, setsigdef=ignored_here)
        except (OSError, ValueError) as error:  # also arguments that no program can be given: a NUL, half a surrogate
            return forked(_failing(argv[0], error))(streams)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Until here it had the agent's own limit, somewhat above.
            resource.prlimit(pid, resource.RLIMIT_AS, (memory, memory))
        return pid

    return launch


def forked(start: Callable[[], NoReturn]) -> Launcher:
    """Return a launcher of a fork that calls `start` and never comes back."""

    def launch(streams: Streams) -> int:
        pid = os.fork()
        if pid == 0:
            _become(start, streams)
        return pid

    return launch


def executed(argv: Sequence[str], env: Mapping[str, str], memory: int, first: Callable[[], None]) -> Launcher:
    """Return a launcher like `spawned` that calls `first` in the child, before the program."""

    def start() -> NoReturn:
        first()
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execve(_find(argv[0], env.get("PATH", os.defpath)), list(argv), dict(env))
        except (OSError, ValueError) as error:
            _failing(argv[0], error)()

    return forked(start)


def _become(start: Callable[[], NoReturn], streams: Streams) -> NoReturn:
    """In the child: own session, own streams, no handle of the agent's."""
    try:
        os.setsid()
        for number, handle in enumerate(streams):
            os.dup2(handle, number)
        os.closerange(3, 1 << 16)
        start()
    except BaseException as error:  # noqa: BLE001 - boundary: a forked child must never return into the agent
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(126)


def _failing(name: str, error: OSError | ValueError) -> Callable[[], NoReturn]:
    def start() -> NoReturn:
        why = error.strerror if isinstance(error, OSError) else str(error)
        os.write(2, f"{name[:200]}: {why}\n".encode(errors="replace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)

    return start


def _find(name: str, path: str) -> str:
    """Return the program that `name` means under the command's own PATH, not the agent's."""
    if "/" in name:
        return name
    for folder in path.split(":"):
        full = f"{folder or '.'}/{name}"
        if name and os.access(full, os.X_OK):
            return full
    raise FileNotFoundError(2, "command not found", name)
