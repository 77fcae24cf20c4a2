"""The promotion gate: every check with its value and its limit, on paired cells against theta*."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bat_core.config.schema import GateConfig
from bat_core.model.decision import Check, Signals
from bat_core.model.diagnosis import Diagnosis, Paired
from bat_core.model.stage import Stage


def checks(diagnosis: Diagnosis, signals: Signals, stages: Sequence[Stage], gate: GateConfig) -> list[Check]:
    """Return all checks of the gate, held ones included."""
    found = [
        _drop("overall", diagnosis.gains.get("overall"), gate.overall, gate.scale),
        *([_drop("task", diagnosis.gains["task"], gate.task, gate.scale)] if "task" in diagnosis.gains else []),
        *(_drop(f"track {name}", gain, gate.track, gate.scale) for name, gain in diagnosis.track_gains.items()),
        *(_drop(f"stage {s.id}", diagnosis.stage_gains.get(s.id), s.guard, gate.scale) for s in stages),
    ]
    gain = diagnosis.gains.get("overall")
    value = gain.mean if gain else None
    found.append(Check(name="catastrophic", value=value, limit=-gate.catastrophic, ok=value is None or value > -gate.catastrophic))
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
    return None if gain is None or math.isnan(gain.mean) else gain.mean
