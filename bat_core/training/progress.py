"""Telling the caller how far a TRL trainer is, and keeping the libraries quiet."""

from __future__ import annotations

import logging
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def quiet() -> None:
    """Silence progress bars and notices of the training libraries; our own progress says what happens."""
    import datasets
    import transformers

    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    datasets.disable_progress_bars()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("trl").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="(trl|transformers|torch|accelerate).*")


def reporting(progress: Callable[[int, int, dict[str, Any]], None]) -> Any:
    """Return a callback that calls `progress(done, total, metrics)` after each step, and again with what is logged."""
    from transformers import TrainerCallback

    class Reporting(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress(state.global_step, state.max_steps, {})

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:
                progress(state.global_step, state.max_steps, dict(logs))

    return Reporting()


def unprinted(trainer: Any) -> Any:
    """Return `trainer` without the callback that prints metrics on standard output, which is for results."""
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def all_finite(log: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether every number in a training log is finite (KL and reward may be absent, not infinite)."""
    return all(math.isfinite(value) for row in log for value in row.values() if isinstance(value, float))
