"""What findings amount to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bat_core.model.leakage import LeakageFinding

Verdict = Literal["pass", "review", "block"]


def worst(findings: Sequence[LeakageFinding]) -> Verdict:
    """Return the verdict that findings amount to."""
    severities = {finding.severity for finding in findings}
    return "block" if "block" in severities else "review" if severities else "pass"
