"""What a run directory holds, finished or not, read without changing anything in it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bat_core.bank.store import report_of
from bat_core.errors import RunError
from bat_core.evolve.journal import Journal
from bat_core.model.base import JsonObject
from bat_core.model.decision import Decision
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.mixture import Mixture
from bat_core.model.run import BankReport, RunSummary
from bat_core.model.training import TrainResult


@dataclass(frozen=True)
class Round:
    """A round as far as it went: what is missing has not happened yet."""

    number: int
    mixture: Mixture
    training: TrainResult | None
    metrics: Sequence[JsonObject]
    diagnosis: Diagnosis | None
    decision: Decision | None

    @property
    def promoted(self) -> bool:
        """Whether its candidate became theta*."""
        return self.decision is not None and self.decision.outcome == "promoted"


@dataclass(frozen=True)
class Run:
    """Everything that the page shows, apart from rollouts."""

    path: Path
    digests: Mapping[str, str]
    settings: str
    bank: BankReport | None
    coldstart: Diagnosis | None
    rounds: Sequence[Round]
    blind: tuple[Diagnosis | None, Diagnosis | None]
    seconds: Mapping[str, float]
    last: str
    summary: RunSummary | None

    @property
    def best(self) -> Diagnosis | None:
        """Held-out diagnosis of theta*: the last promoted round's, else the cold start's."""
        kept = [one.diagnosis for one in self.rounds if one.promoted]
        return kept[-1] if kept else self.coldstart

    @property
    def promotion(self) -> Round | None:
        """The round that theta* comes from, None if it is the cold start."""
        kept = [one for one in self.rounds if one.promoted]
        return kept[-1] if kept else None


def read_run(path: Path) -> Run:
    """Read the run in `path`.

    Raises:
        RunError: If there is no run, or its journal or one of its files is damaged.
    """
    file = path / "journal.sqlite"
    # An empty file would be filled with fresh tables by opening it: reading must not make a run.
    if not file.is_file() or not file.stat().st_size:
        raise RunError(
            f"{path} holds no run: {file.name} is missing or empty",
            remedy="name the directory given to `bat evolve --run`",
        )
    try:
        journal = Journal(file)
        try:
            return _gather(path, journal)
        finally:
            journal.close()
    except (sqlite3.DatabaseError, ValidationError, KeyError, TypeError, ValueError) as error:
        first = " ".join(str(error).split())[:200]
        raise RunError(
            f"{path} is damaged: {first}", remedy="start a new run with --run, or restore it from a copy"
        ) from error


def _gather(path: Path, journal: Journal) -> Run:
    entries = dict(journal.entries())
    settings = path / "config.yaml"
    return Run(
        path=path,
        digests={name: value for name in ("configuration", "domain") if (value := journal.meta(name)) is not None},
        settings=settings.read_text() if settings.is_file() else "",
        bank=_bank(path / "bank", entries.get("bank")),
        coldstart=_diagnosis(entries, "evaluate:coldstart"),
        rounds=[_round(path, entries, int(key.partition(":")[2])) for key in entries if key.startswith("mixture:")],
        blind=(_diagnosis(entries, "blind:coldstart"), _diagnosis(entries, "blind:best")),
        seconds=journal.seconds(),
        last=next(reversed(entries), ""),
        summary=_summary(path / "summary.json"),
    )


def _round(path: Path, entries: Mapping[str, JsonObject], number: int) -> Round:
    training = entries.get(f"train:{number}")
    decision = entries.get(f"decision:{number}")
    return Round(
        number=number,
        mixture=Mixture.model_validate(entries[f"mixture:{number}"]),
        training=None if training is None else TrainResult.model_validate(training),
        metrics=[] if training is None else _lines(round_folder(path, number) / "metrics.jsonl"),
        diagnosis=_diagnosis(entries, f"evaluate:{number}"),
        decision=None if decision is None else Decision.model_validate(decision),
    )


def round_folder(path: Path, number: int) -> Path:
    """Return where a round of the run in `path` keeps its files."""
    return path / "rounds" / f"{number:02d}"


def _diagnosis(entries: Mapping[str, JsonObject], key: str) -> Diagnosis | None:
    return Diagnosis.model_validate(entries[key]) if key in entries else None


def _bank(folder: Path, entry: JsonObject | None) -> BankReport | None:
    if (folder / "manifest.json").is_file():
        return report_of(folder)
    return None if entry is None else BankReport.model_validate(entry)


def _summary(path: Path) -> RunSummary | None:
    return RunSummary.model_validate_json(path.read_text()) if path.is_file() else None


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
