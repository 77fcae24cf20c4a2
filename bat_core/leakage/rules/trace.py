"""Traces: logs, commands and observations of a held-out run, of which a passage is enough."""

from __future__ import annotations

from bat_core.leakage.rules.copied import CopyRule
from bat_core.model.leakage import HeldoutItem

_LEAST_WORDS = 8


class TraceRule(CopyRule):
    """Fires on a passage of a held-out trace."""

    name = "trace"
    kinds = frozenset({"trace"})
    reason = "a passage of a held-out trace"

    def long_enough(self, item: HeldoutItem) -> bool:
        """Whether it has 8 words."""
        return len(item.text.split()) >= _LEAST_WORDS
