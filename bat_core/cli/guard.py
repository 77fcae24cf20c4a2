"""Expected failures become one line on standard error and an exit code."""

from __future__ import annotations

import errno
import functools
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from bat_core.errors import BatError

STDOUT = 1


def guarded(command: Callable[..., Any], *, debug: bool) -> Callable[..., Any]:
    """Return `command` with its expected failures turned into exits: 2 for errors, 130 for an interrupt."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            _leave("interrupted; what was finished stays, run the same command to go on", 130)
        except BatError as error:
            if debug:
                raise
            _leave(str(error), 2)
        except OSError as error:
            if debug:
                raise
            if isinstance(error, BrokenPipeError):
                _check_reader()
            _leave(_system(error), 2)
        except Exception as error:  # boundary: a plugin may raise anything
            said = None if debug else _foreign(error)
            if said is None:
                raise
            _leave(said, 2)

    return run


def _foreign(error: Exception) -> str | None:
    """Return what to say of an error that a plugin's code raised; None if it is ours."""
    from bat_core.blame import plugin_error

    told = plugin_error(error)
    return None if told is None else str(told)


def _system(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{where}; free some space and run the same command again, it goes on"
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"no permission{where}: {error.strerror}; choose another --run or mend the rights"
    return _foreign(error) or f"{error.strerror or error}{where}; run with --debug for details"


def _check_reader() -> None:
    """Leave without a word, as other programs do, if whoever read our output, such as `head`, has had enough."""
    output = select.poll()
    output.register(STDOUT, 0)
    if any(event & select.POLLERR for _, event in output.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        raise SystemExit(128 + signal.SIGPIPE)


def _leave(message: str, code: int) -> NoReturn:
    print(f"bat: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(code)
