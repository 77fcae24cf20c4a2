"""Overrides: samples that a person admits although a rule fired, each with a reason that stays on record."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from bat_core.errors import LeakageError
from bat_core.leakage.strict import loads
from bat_core.model.base import Value
from bat_core.model.leakage import Checked

_LEAST_REASON = 12
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Override(Value):
    """One decision.

    Attributes:
        sample: Digest of the sample, as the rejection log names it.
        reason: Why it is no leak.
        by: Who decided.
    """

    sample: str
    reason: str
    by: str

    def __str__(self) -> str:
        """Return the decision in one line."""
        return f"{self.sample[:19]} by {self.by}: {self.reason}"


def read_overrides(path: Path) -> dict[str, Override]:
    """Return the decisions in a file of JSON lines, by digest.

    Raises:
        LeakageError: A line is no decision, or gives no reason.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LeakageError(f"can't read {path} ({type(error).__name__})", remedy="check leakage.overrides") from error
    found = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            one = _read(line, f"{path}:{number}")
            found[one.sample] = one
    return found


def admitted(checked: Checked, override: Override | None) -> bool:
    """Whether a sample may be used: it passed, or its findings are overridden; a check that failed can't be."""
    if checked.verdict == "pass":
        return True
    return override is not None and all(finding.kind for finding in checked.findings)


def _read(line: str, where: str) -> Override:
    remedy = 'each line needs {"sample": "sha256:...", "reason": "...", "by": "..."}'
    try:
        one = Override.model_validate(loads(line))
    except (ValidationError, ValueError, RecursionError) as error:
        raise LeakageError(f"{where} is no override", remedy=remedy) from error
    if not _DIGEST.fullmatch(one.sample) or not one.by.strip():
        raise LeakageError(f"{where} names no sample or no person", remedy=remedy)
    if len(one.reason.strip()) < _LEAST_REASON:
        raise LeakageError(f"{where} gives no reason", remedy="say in a sentence why this is no leak")
    return one
