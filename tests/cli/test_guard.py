from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from bat_core.cli.guard import guarded
from bat_core.errors import ConfigError


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConfigError("no such key", remedy="look\n  again"), 2, "bat: no such key; look again"),
        (KeyboardInterrupt(), 130, "bat: interrupted; what was finished stays, run the same command to go on"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/run/x"),
            2,
            "bat: the disk is full (/run/x); free some space and run the same command again, it goes on",
        ),
        (
            OSError(errno.EDQUOT, "Quota"),
            2,
            "bat: the disk is full; free some space and run the same command again, it goes on",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/run"),
            2,
            "bat: no permission (/run): Permission denied; choose another --run or mend the rights",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "p"),
            2,
            "bat: No such file or directory (p); run with --debug for details",
        ),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 2, "bat: Broken pipe; run with --debug for details"),
    ],
)
def test_an_expected_failure_is_one_line_and_a_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        guarded(raising(error), debug=False)()
    assert caught.value.code == code
    said = capsys.readouterr()
    assert said.err == line + "\n" and said.out == ""


@pytest.mark.parametrize("error", [ConfigError("x"), OSError(errno.ENOSPC, "full")])
def test_debug_shows_the_traceback(error: Exception) -> None:
    with pytest.raises(type(error)):
        guarded(raising(error), debug=True)()


def test_what_is_not_expected_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        guarded(raising(ZeroDivisionError()), debug=False)()


def test_a_command_that_works_returns_what_it_returns_and_keeps_its_name() -> None:
    def add(a: int, *, b: int) -> int:
        """Add."""
        return a + b

    command = guarded(add, debug=False)
    assert command(1, b=2) == 3 and (command.__name__, command.__doc__) == ("add", "Add.")
