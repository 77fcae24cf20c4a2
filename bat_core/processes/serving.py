"""The child's side: frames on stdin and stdout, everything else that is printed goes to stderr."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import BinaryIO

from bat_core.processes.parent import die_with_parent

Serve = Callable[[BinaryIO, BinaryIO], int]


def served(serve: Serve) -> int:
    """Return what `serve` returns, called with the frames' source and sink. It ends with its stdin or its parent.

    An interrupt is the parent's to handle; stray prints of libraries can't disturb the frames.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(0), "rb") as source, os.fdopen(os.dup(1), "wb") as sink:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        return serve(source, sink)
