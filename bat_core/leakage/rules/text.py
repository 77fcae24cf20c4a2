"""Texts: prompts, reports and worded answers, copied as a whole or in good part."""

from __future__ import annotations

from bat_core.leakage.rules.copied import CopyRule
from bat_core.model.leakage import HeldoutItem

_LEAST_WORDS = 8
_LEAST_ANSWER = 12


class TextRule(CopyRule):
    """Fires on a copy of a held-out text: verbatim, in part, reordered or edited."""

    name = "text"
    kinds = frozenset({"text", "answer"})

    def long_enough(self, item: HeldoutItem) -> bool:
        """Whether it has 8 words, or 12 if it is an answer."""
        return len(item.text.split()) >= (_LEAST_ANSWER if item.kind == "answer" else _LEAST_WORDS)
