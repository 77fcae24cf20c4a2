from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bat_core.model.decision import Decision, Signals
from bat_core.model.diagnosis import Diagnosis, Paired
from bat_core.model.history import History, RoundRecord
from bat_core.model.mixture import Mixture
from bat_core.model.stage import Stage

D = "sha256:" + "0" * 64


def paired(mean: float | None, half: float = 0.0) -> Paired | None:
    if mean is None:
        return None
    return Paired(mean=mean, low=max(-1.0, mean - half), high=min(1.0, mean + half), n=48)


@pytest.fixture
def stages() -> list[Stage]:
    return [Stage(id=i, title=i, goal=f"Do {i}.", weight=1) for i in ("A", "B", "C")]


@pytest.fixture
def diagnosis() -> Callable[..., Diagnosis]:
    """Make a diagnosis: scores, and mean gains by name (`half` is half the width of every interval)."""

    def make(
        scores: dict[str, float | None] | None = None,
        overall: float | None = 0.0,
        task: float | None = None,
        gains: dict[str, float | None] | None = None,
        tracks: dict[str, float | None] | None = None,
        half: float = 0.0,
        **values: Any,
    ) -> Diagnosis:
        def all_of(named: dict[str, float | None]) -> dict[str, Paired]:
            return {name: one for name, mean in named.items() if (one := paired(mean, half)) is not None}

        plain: dict[str, Any] = {
            "policy": D, "suite": D, "overall": 0.5, "agentic": 0.5, "tracks": {}, "n": 48,
            "stages": scores or {"A": 0.5, "B": 0.5, "C": 0.5},
            "gains": all_of({"overall": overall, "task": task}),
            "stage_gains": all_of({"A": 0.0, "B": 0.0, "C": 0.0} if gains is None else gains),
            "track_gains": all_of(tracks or {}),
        }  # fmt: skip
        return Diagnosis.model_validate(plain | values)

    return make


@pytest.fixture
def history() -> Callable[..., History]:
    """Make a history from a cold start and (outcome, diagnosis) pairs."""

    def make(coldstart: Diagnosis, *rounds: tuple[str, Diagnosis]) -> History:
        records = tuple(
            RoundRecord(
                round=number,
                mixture=Mixture(round=number, target="A", groups={}, mix=(), reason="r"),
                diagnosis=one,
                signals=Signals(finite=True),
                decision=Decision.model_validate(
                    {"round": number, "outcome": outcome, "gain": None, "checks": (), "reason": "r"}
                ),
            )
            for number, (outcome, one) in enumerate(rounds, 1)
        )
        return History(coldstart=coldstart, rounds=records)

    return make
