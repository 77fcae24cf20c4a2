"""A check as a verifier: a function from a case file to a finding."""

from __future__ import annotations

from collections.abc import Callable

from bat_core.verify.toolbox.finding import Finding, claim
from bat_core.verify.toolbox.finding import FunctionVerifier as Wrapped
from bat_medimaging.casefile import Casefile, casefile_of

__all__ = ["Check", "Finding", "FunctionVerifier", "claim"]

Check = Callable[[Casefile], Finding]


class FunctionVerifier(Wrapped[Casefile]):
    """Wraps a check. Bad evidence is a finding, never an exception."""

    def __init__(self, check: Check) -> None:
        super().__init__(check, casefile_of)
