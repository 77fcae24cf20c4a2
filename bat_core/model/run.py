"""What observers are told about a run."""

from __future__ import annotations

from bat_core.model.base import JsonObject, Value


class RunInfo(Value):
    """Identity of a run."""

    name: str
    directory: str
    domain: str
    seed: int
    config: str


class BankReport(Value):
    """What a bank holds, and what was refused and why."""

    digest: str
    generation: int = 1
    tasks: int
    states: int
    slices: int
    rejected: int
    cells: dict[str, int]
    rejections: dict[str, int] = {}
    overrides: tuple[str, ...] = ()


class RunSummary(Value):
    """The content of `summary.json`."""

    name: str
    domain: str
    seed: int
    heldout: JsonObject
    blind: JsonObject
    rounds: tuple[JsonObject, ...]
    counts: JsonObject
    seconds: dict[str, float]
    stop_reason: str
    dropped_observers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
