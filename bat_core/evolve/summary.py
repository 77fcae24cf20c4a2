"""The outcome of a run, computed from its journal."""

from __future__ import annotations

from collections.abc import Sequence

from bat_core.evolve.journal import Journal
from bat_core.model.base import JsonObject
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History
from bat_core.model.run import RunInfo, RunSummary


def points(value: float | None) -> float | None:
    """Return a score as 0-100, null where there is none."""
    return None if value is None else round(100 * value, 2)


def scores(diagnosis: Diagnosis) -> JsonObject:
    """Return a diagnosis as the summary shows it, in 0-100."""
    return {
        "overall": points(diagnosis.overall),
        "agentic": points(diagnosis.agentic),
        "task": points(diagnosis.task),
        "finished": points(diagnosis.finished),
        "stages": {stage: points(score) for stage, score in diagnosis.stages.items()},
        "tracks": {track: points(score) for track, score in diagnosis.tracks.items()},
        "n": diagnosis.n,
        "invalid": diagnosis.invalid,
    }


def summarize(
    info: RunInfo,
    journal: Journal,
    history: History,
    blind_before: Diagnosis,
    blind_after: Diagnosis,
    dropped: Sequence[str],
) -> RunSummary:
    """Return the summary of a finished run."""
    last = history.rounds[-1].decision
    return RunSummary(
        name=info.name,
        domain=info.domain,
        seed=info.seed,
        heldout={"coldstart": scores(history.coldstart), "best": scores(history.best)},
        blind={"coldstart": scores(blind_before), "best": scores(blind_after)},
        rounds=tuple(_round(record.model_dump(mode="json")) for record in history.rounds),
        counts=_counts(journal),
        seconds=journal.seconds(),
        stop_reason=last.stop_reason,
        dropped_observers=tuple(dropped),
    )


def _round(record: JsonObject) -> JsonObject:
    return {
        "round": record["round"],
        "mixture": {"target": record["mixture"]["target"], "groups": record["mixture"]["groups"]},
        "reward": record["signals"]["reward"],
        "kl": record["signals"]["kl"],
        "kl_k3": record["signals"]["kl_k3"],
        "overall": points(record["diagnosis"]["overall"]),
        "gain": points(record["decision"]["gain"]),
        "decision": record["decision"]["outcome"],
        "reason": record["decision"]["reason"],
    }


def _counts(journal: Journal) -> JsonObject:
    bank = journal.get("bank") or {}
    training = [entry["stats"] for key, entry in journal.entries() if key.startswith("train:")]
    total = {name: sum(stats[name] for stats in training) for name in (training[0] if training else {})}
    return {
        "tasks": bank.get("tasks"),
        "states": bank.get("states"),
        "slices": bank.get("slices"),
        "rejected": bank.get("rejected"),
        **total,
    }
