"""The only value that crosses the firewall, and what it is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bat_core.model.base import Value

Unit = Annotated[float, Field(ge=0, le=1)]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class Paired(Value):
    """Mean difference candidate minus reference over paired cells, with a bootstrap interval (0-1)."""

    mean: float = Field(ge=-1, le=1)
    low: float = Field(ge=-1, le=1)
    high: float = Field(ge=-1, le=1)
    n: int = Field(ge=1)


class Diagnosis(Value):
    """Aggregates of an evaluation; no text, no identifiers, no cells.

    A score that could not be judged anywhere is None, never 0. `n` counts valid cells, `invalid` the rest.
    `stages`, `tracks` and `failures` are keyed by names that the domain declares beforehand.
    """

    policy: Digest
    suite: Digest
    against: Digest | None = None
    overall: Unit | None
    agentic: Unit | None
    task: Unit | None = None
    stages: dict[Key, Unit | None]
    tracks: dict[Key, Unit | None]
    n: int = Field(ge=0)
    invalid: int = Field(default=0, ge=0)
    finished: Unit | None = None
    gains: dict[Key, Paired] = {}
    stage_gains: dict[Key, Paired] = {}
    track_gains: dict[Key, Paired] = {}
    failures: dict[Key, int] = {}
