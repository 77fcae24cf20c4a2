"""Short commands for the five stages. Each prints one line and works on the workspace around it.

Nothing here is privileged: whatever a command does can be done by own code, and nobody asks which
command did it. The workspace is the current folder, or the one named by PHX_ROOT.
"""

from __future__ import annotations

from .infer import batch, skip
from .pilot import fix, look, run
from .planning import brief, card, plan
from .setup import header, load, use, verify
from .submit import repair, submit, validate

__all__ = [
    "batch",
    "brief",
    "card",
    "fix",
    "header",
    "load",
    "look",
    "plan",
    "repair",
    "run",
    "skip",
    "submit",
    "use",
    "validate",
    "verify",
]
