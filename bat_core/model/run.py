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
    """What a bank holds, and what was refused and why.

    Attributes:
        digest: Identity of everything up to this generation.
        generation: How often the bank was added to, plus one.
        asked: Tasks that were asked for.
        tasks, states, slices, rejected: Counts over all generations.
        cells: States by `focus/track/stratum`.
        rejections: Rejected samples by rule.
        overrides: Samples that were admitted although a rule fired, with who decided it and why.
        missing: Why a cell of the domain is empty.
        e2e: E2E states by `track/where`: where the fault lies, `none` or `unrecoverable`.
        duplicates: Tasks left out because they were near-copies of earlier ones.
        distinct: Share of prompts that differ from all others after normalisation, None of an empty bank.
    """

    digest: str
    generation: int = 1
    asked: int = 0
    tasks: int
    states: int
    slices: int
    rejected: int
    cells: dict[str, int]
    rejections: dict[str, int] = {}
    overrides: tuple[str, ...] = ()
    missing: dict[str, str] = {}
    e2e: dict[str, int] = {}
    duplicates: int = 0
    distinct: float | None = None


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
