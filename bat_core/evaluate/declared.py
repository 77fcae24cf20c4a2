"""The names that may cross the firewall: those that a domain declares before anything is evaluated."""

from __future__ import annotations

from bat_core.model.diagnosis import Diagnosis
from bat_core.registry import load_domain

OVERALL = frozenset({"overall", "agentic", "task"})


def undeclared(diagnosis: Diagnosis, domain: str) -> set[str]:
    """Return the keys of a diagnosis that are no stage, track or failure category of `domain`."""
    plugin = load_domain(domain)
    contract = plugin.contract()
    stages = {stage.id for stage in contract.stages()}
    tracks = set(contract.tracks())
    failures = stages | set(plugin.failure_categories())
    return (
        (set(diagnosis.stages) - stages)
        | (set(diagnosis.stage_gains) - stages)
        | (set(diagnosis.tracks) - tracks)
        | (set(diagnosis.track_gains) - tracks)
        | (set(diagnosis.gains) - OVERALL)
        | (set(diagnosis.failures) - failures)
    )
