"""The promotion gate: every check with its value and its limit, on paired cells against theta*."""

from __future__ import annotations

from collections.abc import Sequence

from bat_core.config.schema import GateConfig
from bat_core.model.decision import Check, Signals
from bat_core.model.diagnosis import Diagnosis, Paired
from bat_core.model.stage import Stage


def checks(
    diagnosis: Diagnosis, best: Diagnosis, signals: Signals, stages: Sequence[Stage], gate: GateConfig
) -> list[Check]:
    """Return all checks of the gate, held ones included.

    Args:
        diagnosis: Of the candidate, with its gains over theta*.
        best: Of theta*: a task or track score that it has and the candidate lacks is a failed check.
        signals: What training says.
        stages: With their guards.
        gate: The limits.
    """
    gains, tracks = diagnosis.gains, diagnosis.track_gains
    overall = gains.get("overall")
    found = [_drop("overall", overall, gate.overall, gate.scale)]
    if "task" in gains or best.task is not None:
        found.append(_drop("task", gains.get("task"), gate.task, gate.scale))
    judged = [name for name, score in best.tracks.items() if score is not None]
    for name in dict.fromkeys([*tracks, *judged]):
        found.append(_drop(f"track {name}", tracks.get(name), gate.track, gate.scale))
    found += [_drop(f"stage {s.id}", diagnosis.stage_gains.get(s.id), s.guard, gate.scale) for s in stages]
    # An overall gain that could not be measured holds the round already; it is no sign of a catastrophe.
    fall = _drop("catastrophic", overall, gate.catastrophic, gate.scale)
    found.append(fall if overall is not None else fall.model_copy(update={"ok": True}))
    found.append(Check(name="finite", value=None, limit=None, ok=signals.finite))
    far = signals.kl is not None and signals.kl > gate.tau
    found.append(Check(name="kl", value=signals.kl, limit=gate.tau, ok=not far))
    return found


def _drop(name: str, gain: Paired | None, limit: float, scale: str) -> Check:
    """Return whether a drop beyond `limit` is shown: the interval's upper end (or the mean) lies below minus the limit.

    A gain that could not be measured fails the check: what was not judged can't be waved through.
    """
    if gain is None:
        return Check(name=name, value=None, limit=-limit, ok=False)
    value = gain.high if scale == "interval" else gain.mean
    return Check(name=name, value=value, limit=-limit, ok=value >= -limit)


def gain_of(diagnosis: Diagnosis) -> float | None:
    """Return the mean gain of overall over theta*, None if it could not be measured."""
    gain = diagnosis.gains.get("overall")
    return None if gain is None else gain.mean
