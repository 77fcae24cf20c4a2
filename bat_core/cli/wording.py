"""Numbers as commands print them."""

from __future__ import annotations


def number(value: float | None) -> str:
    """Return three digits, a dash for what is not known."""
    return "-" if value is None else f"{value:.3f}"
