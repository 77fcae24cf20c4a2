"""Ending with one's parent, whatever happens to it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """End this process when its parent does, even if a copy of our stdin lives on elsewhere. Main thread only.

    The kernel also sends the signal when only the thread that started us ends; then the parent is still there, and
    we go on. On systems other than Linux nothing happens.
    """
    parent = os.getppid()

    def on_signal(number: int, frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    if sys.platform == "linux":
        signal.signal(signal.SIGUSR1, on_signal)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGUSR1))
        on_signal(signal.SIGUSR1, None)  # it may have died before we asked
