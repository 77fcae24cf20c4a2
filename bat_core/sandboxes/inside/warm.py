"""The warm interpreter: modules are imported once, each call runs in a fork that knows them already."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import linecache
import os
import random
import sys
import threading
import traceback
import types
from collections.abc import Sequence
from typing import Any, NoReturn

NAME = "<python>"


def preload(modules: Sequence[str]) -> dict[str, Any]:
    """Import `modules`; return what a program finds bound already: their top-level packages by name."""
    for name in modules:
        importlib.import_module(name)
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")  # it comes late by itself, and then isn't ours to seed
    tops = {name.partition(".")[0] for name in modules}
    gc.collect()
    gc.freeze()  # a collection in a fork needn't touch, and so copy, the pages of what is shared
    return {name: sys.modules[name] for name in sorted(tops)}


def run_source(source: str, bound: dict[str, Any]) -> NoReturn:
    """In a forked child: run `source` as `__main__` and leave, never return."""
    code = 1
    try:
        _fresh_streams()
        _fresh_luck()
        code = _run(source, bound)
    except BaseException:  # noqa: BLE001 - boundary: a forked child must never return into the agent
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code & 0xFF)


def _run(source: str, bound: dict[str, Any]) -> int:
    main = types.ModuleType("__main__")
    main.__dict__.update(bound)
    sys.modules["__main__"] = main
    sys.argv = [NAME]
    lines = source.splitlines(keepends=True)
    linecache.cache[NAME] = (len(source), None, lines, NAME)
    code = 0
    try:
        exec(compile(source, NAME, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        code = _exit_code(error.code)
    except BaseException as error:  # noqa: BLE001 - boundary: whatever the program raised is its own result
        _print_error(error)
        code = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # an interpreter waits for threads at its end
        atexit._run_exitfuncs()
    except BaseException as error:  # noqa: BLE001 - boundary
        _print_error(error)
    return code


def _exit_code(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    print(value, file=sys.stderr)
    return 1


def _print_error(error: BaseException) -> None:
    """Print the traceback without the agent's own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != NAME:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _fresh_streams() -> None:
    sys.stdin = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), encoding="utf-8", errors="surrogateescape")
    sys.stdout = io.TextIOWrapper(_writer(1), encoding="utf-8", errors="surrogateescape")
    sys.stderr = io.TextIOWrapper(_writer(2), encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.__dict__.update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)


def _writer(handle: int) -> io.BufferedWriter:
    return io.BufferedWriter(io.FileIO(handle, "w", closefd=False))


def _fresh_luck() -> None:
    """Seed the global generators with 0, as the hash seed is: a call's output depends on its source alone."""
    random.seed(0)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(0)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001 - boundary: the program may have put anything there
            continue
