"""The local executor: worker processes, or this process when there are none."""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from bat_core.blame import blamed
from bat_core.errors import BatError
from bat_core.hooks.executor import Executor
from bat_core.processes.parent import die_with_parent


def resolve(name: str) -> Callable[[Any], Any]:
    """Return the function that `module:function` names."""
    module, _, attribute = name.partition(":")
    function: Callable[[Any], Any] = getattr(importlib.import_module(module), attribute)
    return function


def _call(name: str, item: Any) -> Any:
    with blamed():  # here, since a traceback does not cross to the caller
        return resolve(name)(item)


def _start_worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    die_with_parent()


class LocalExecutor(Executor):
    """Runs on this machine.

    Args:
        workers: Processes; 0 runs everything in the calling process (needed where a model lives in it).
    """

    def __init__(self, workers: int = 0) -> None:
        self._pool = None
        if workers:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)

    def map(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
        """Yield results in order; a worker that dies ends the map with one clear error."""
        if self._pool is None:
            yield from map(resolve(name), items)
            return
        futures = [self._pool.submit(_call, name, item) for item in items]
        try:
            for future in futures:
                yield future.result()
        except BrokenProcessPool as error:
            raise BatError(
                f"a worker process died during {name}", remedy="run the same command again; it goes on"
            ) from error
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End all workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
