"""The agent as one program text, for an interpreter that has nothing of ours installed."""

from __future__ import annotations

import functools
from pathlib import Path

_MODULES = (
    "bat_core.sandboxes.tree",
    "bat_core.sandboxes.tarball",
    "bat_core.sandboxes.inside.frames",
    "bat_core.sandboxes.inside.process",
    "bat_core.sandboxes.inside.workspace",
    "bat_core.sandboxes.inside.launch",
    "bat_core.sandboxes.inside.run",
    "bat_core.sandboxes.inside.warm",
    "bat_core.sandboxes.inside.agent",
)
# The names are dropped again at the end: what a command imports as bat_core must be the real one or none.
_LOADER = """
import sys
sys.path[:] = [folder for folder in sys.path if folder]
module = type(sys)
for name, source in {sources!r}:
    sys.modules[name] = made = module(name)
    exec(compile(source, "<" + name + ">", "exec", dont_inherit=True), made.__dict__)
main = made.main
for name in {names!r}:
    del sys.modules[name]
main()
"""


@functools.cache
def agent_program() -> str:
    """Return the program; it fits into one argument of a command line."""
    here = Path(__file__).parent
    sources = []
    for name in _MODULES:
        path = here.joinpath(*name.split(".")[2:]).with_suffix(".py")
        sources.append((name, path.read_text(encoding="utf-8")))
    return _LOADER.format(sources=sources, names=[name for name, _ in sources])
