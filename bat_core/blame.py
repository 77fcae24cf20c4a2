"""Whose code an unexpected error comes from: a plugin that raises is named, so that its authors are asked, not we.

Plugins are called in many places, and what they return is called too. So nothing wraps the calls; where errors leave
a process (the command line, a worker) the traceback says who raised.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bat_core.errors import BatError, PluginError
from bat_core.registry import owners

OURS = "bat_core"
LONGEST = 200
"""Characters of a foreign message that are shown; a policy may have had a hand in it."""


@contextmanager
def blamed() -> Iterator[None]:
    """Turn what a plugin's code raises within into a `PluginError`; everything else goes through as it is."""
    try:
        yield
    except BatError:
        raise
    except Exception as error:  # boundary: a plugin may raise anything
        told = plugin_error(error)
        if told is None:
            raise
        raise told from error


def plugin_error(error: Exception) -> PluginError | None:
    """Return an error that names plugin, version, method and what to do; None if no plugin raised it.

    The innermost frame of either decides between a plugin and us; libraries that they call don't count. The method is
    the one by which our code entered the plugin's.
    """
    plugins = owners()
    told: PluginError | None = None
    entered = False
    for frame, _ in traceback.walk_tb(error.__traceback__):
        package = _package(frame)
        if package == OURS:
            told, entered = None, False
        elif package in plugins and not entered:
            method = frame.f_code.co_qualname
            told = PluginError(
                f"{plugins[package]} raised {type(error).__name__} in {method}: {_short(str(error))}",
                remedy="mend it, or ask its authors; --debug shows the traceback",
            )
            entered = True
    return told


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _short(text: str) -> str:
    line = " ".join(text.split())
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
    return "".join(letter if letter.isprintable() else "?" for letter in shown)
