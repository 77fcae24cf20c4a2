"""Integrity first: what a rollout must not have touched."""

from __future__ import annotations

from collections.abc import Sequence

from bat_core.model.evidence import Evidence


def breach(evidence: Evidence, protected: Sequence[str]) -> str:
    """Return which protected path was changed, added or removed; empty if none was.

    Args:
        evidence: The sealed rollout.
        protected: Path prefixes, from the domain's contract.
    """
    shield = tuple(protected)
    for path in sorted(set(evidence.start) | set(evidence.files)):
        if path.startswith(shield) and evidence.start.get(path) != evidence.files.get(path):
            return f"protected path {path} was changed"
    for path in evidence.odd:
        if path.startswith(shield):
            return f"protected path {path} was replaced by something that is not a file"
    return ""
