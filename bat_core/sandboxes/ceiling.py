"""How much memory a whole sandbox may ever take, where a control group can hold it to that."""

from __future__ import annotations

from bat_core.model.sandbox import Limits

AGENT = 192 << 20
"""The agent's own share: an interpreter with numpy and its friends imported."""


def memory_ceiling(limits: Limits) -> int:
    """Return the hard limit: the commands' memory, three file systems full to the brim, and the agent packing one.

    The agent's watch ends commands at `limits.memory` already; this holds when it is too slow.
    """
    brim = 2 * limits.disk + max(1 << 20, limits.disk // 4)
    return limits.memory + brim + 2 * limits.disk + AGENT
