"""Claims: whether words say that something succeeded. A claim never proves; one without support costs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bat_core.verify.toolbox.words import visible

ADMITS = re.compile(
    r"\b(?:could ?n[o']t|can ?n[o']t|unable|incomplete|not (?:complete|done|finished|all)|failed|ran out|gave up)",
    re.I,
)
SWEEPING = re.compile(
    r"\b(?:all|every|each)\b[^.\n]{0,60}\b(?:pass(?:ed|es)?|ok|verified|complete[d]?|done|stored|in place|success\w*)\b"
    r"|\bnothing (?:is )?missing\b|\b(?:full marks|flawless|perfect)\b|100 ?%|\bpass\b[^.\n]{0,20}\ball\b"
    r"|\ball items\b|\"(?:pass|verdict)\": ?(?:1|true)",
    re.I,
)
TICKS = re.compile("[\u2705\u2714\u2611]")


def claims_all(text: str) -> bool:
    """Return whether a text says that everything succeeded and does not admit that something failed."""
    seen = visible(text)
    return bool(SWEEPING.search(seen) or TICKS.search(seen)) and not ADMITS.search(seen)


def claims_item(text: str, item: str, words: Iterable[str] = ()) -> bool:
    """Return whether a text says that an item, named by its id or by all of `words`, succeeded."""
    for line in re.split(r"(?<=[.!?])\s+|\n", visible(text)):
        named = re.search(rf"\b{re.escape(item)}\b", line) or (words and all(word in line.lower() for word in words))
        if named and not ADMITS.search(line):
            return True
    return False
