"""Integrity first: what a rollout must not have touched."""

from __future__ import annotations

from collections.abc import Sequence

from bat_core.model.evidence import Evidence
from bat_core.verify.toolbox.inputs import changed


def breach(evidence: Evidence, protected: Sequence[str]) -> str:
    """Return which protected path was changed, added or removed; empty if none was.

    Args:
        evidence: The sealed rollout.
        protected: Path prefixes, from the domain's contract.
    """
    return next(iter(changed(evidence.start, evidence.files, protected, evidence.odd)), "")
