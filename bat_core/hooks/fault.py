"""Fault: a mistake that a domain can plant, show and repair."""

from __future__ import annotations

from bat_core.model.base import Value


class Fault(Value):
    """One entry of a domain's catalogue.

    Attributes:
        id: Such as `V2`.
        stage: Where its symptom shows.
        tracks: Tracks in which it can be planted; empty means all.
        symptom: What an observation says when it shows (a substring of real tool output).
        repair: What the expert does about it, in words.
        recoverable: Whether it can be repaired; else an honest stop is the solution.
    """

    id: str
    stage: str
    tracks: tuple[str, ...] = ()
    symptom: str
    repair: str
    recoverable: bool = True
