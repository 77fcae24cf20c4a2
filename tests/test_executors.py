from __future__ import annotations

import time

import pytest

from bat_core.errors import BatError
from bat_core.executors import LocalExecutor, resolve


def test_work_without_workers_runs_here_and_in_order() -> None:
    executor = LocalExecutor(0)
    assert list(executor.map("builtins:abs", [-3, 2, -1])) == [3, 2, 1]

    executor.close()
    executor.close()


def test_work_with_workers_keeps_its_order_and_its_errors() -> None:
    executor = LocalExecutor(1)
    try:
        assert list(executor.map("builtins:abs", range(-5, 0))) == [5, 4, 3, 2, 1]
        with pytest.raises(TypeError):
            list(executor.map("builtins:abs", ["x"]))
        assert list(executor.map("os:getenv", ["OMP_NUM_THREADS"])) == ["1"]
    finally:
        executor.close()


def test_a_worker_that_dies_ends_the_map_with_one_clear_error() -> None:
    executor = LocalExecutor(1)
    started = time.monotonic()
    with pytest.raises(BatError, match="a worker process died during os:_exit; run the same command again; it goes on"):
        list(executor.map("os:_exit", [3]))
    executor.close()
    assert time.monotonic() - started < 30


def test_a_name_is_a_module_and_a_function() -> None:
    assert resolve("os.path:basename")("a/b") == "b"
