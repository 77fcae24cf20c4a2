"""How the page spells numbers: points, nulls with their reason, times and shortened texts."""

from __future__ import annotations

from bat_core.model.diagnosis import Diagnosis, Paired

NOT_JUDGED = "not judged"
NOT_YET = "not yet"


def points(value: float | None) -> str:
    """Return a score of 0-1 in points, or that it was not judged; never 0 for what is unknown."""
    return NOT_JUDGED if value is None else f"{100 * value:.1f}"


def gain(value: Paired | None) -> str:
    """Return a paired gain in points with its interval."""
    if value is None:
        return "not measured"
    return f"{100 * value.mean:+.1f} [{100 * value.low:+.1f}, {100 * value.high:+.1f}]"


def number(value: float | None, digits: int = 3) -> str:
    """Return a measured number, or that it was not measured."""
    return "not measured" if value is None else f"{value:.{digits}f}"


def missing(diagnosis: Diagnosis) -> str:
    """Return why scores of a diagnosis may be absent: how many cells could not be judged."""
    if not diagnosis.invalid:
        return "no cell has this score"
    return f"{diagnosis.invalid} of {diagnosis.n + diagnosis.invalid} cells could not be judged"


def duration(seconds: float) -> str:
    """Return seconds in the unit a reader would choose."""
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def capped(text: str, limit: int) -> str:
    """Return `text`, or its beginning and how much is left out. Control characters are shown, not obeyed."""
    plain = "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:limit])
    return plain if len(text) <= limit else f"{plain}\n[{len(text) - limit} more characters]"
