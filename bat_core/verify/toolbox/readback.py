"""Read-back: whether somebody looked at an artifact as it lies on disk at the end."""

from __future__ import annotations

from collections.abc import Sequence

from bat_core.verify.toolbox.facts import Call, Fact, echoed, forged
from bat_core.verify.toolbox.finding import NOTHING, Finding


def read_back(calls: Sequence[Call], facts: Sequence[Fact], need: int, must: Sequence[Fact] = ()) -> Finding:
    """Return whether a call printed `need` of the facts that the artifact holds now, and all of `must`.

    Facts of the final bytes can't be printed by a look at older ones, so the order needs no proof of its own. Whoever
    spells the facts out in code has not looked: the claim is made and has no support.

    Args:
        calls: The ledger, as `calls_of` gives it.
        facts: What only a reader of the artifact knows, computed here from its bytes.
        need: How many of them a look shows.
        must: Facts without which it does not count.
    """
    made_up = forged(calls, [*facts, *must], max(need, len(must)))
    seen = bool(facts or must) and echoed(calls, facts, need, must)
    if made_up:
        return Finding(seen, "" if seen else "a call spells out what it prints", True, NOTHING)
    return Finding(seen, "" if seen else "no call shows what lies on disk")
