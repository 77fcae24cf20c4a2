"""The agent as one program text, for an interpreter that has nothing of ours installed."""

from __future__ import annotations

import base64
import functools
import marshal
import zlib
from pathlib import Path

_MODULES = (
    "bat_core.sandboxes.tree",
    "bat_core.sandboxes.tarball",
    "bat_core.sandboxes.inside.frames",
    "bat_core.sandboxes.inside.process",
    "bat_core.sandboxes.inside.workspace",
    "bat_core.sandboxes.inside.launch",
    "bat_core.sandboxes.inside.confine",
    "bat_core.sandboxes.inside.run",
    "bat_core.sandboxes.inside.warm",
    "bat_core.sandboxes.inside.agent",
)
# The names are dropped again at the end: what a command imports as bat_core must be the real one or none.
_LOADER = """
import sys
sys.path[:] = [folder for folder in sys.path if folder]
module = type(sys)
{unpack}
for name, code in program:
    sys.modules[name] = made = module(name)
    exec(code, made.__dict__)
main = made.main
for name, code in program:
    del sys.modules[name]
main()
"""
_COMPILED = "import marshal, zlib, binascii\nprogram = marshal.loads(zlib.decompress(binascii.a2b_base64({data!r})))"
_SOURCE = "program = [(name, compile(text, '<' + name + '>', 'exec', dont_inherit=True)) for name, text in {data!r}]"


@functools.cache
def agent_program(*, compiled: bool = False) -> str:
    """Return the program; it fits into one argument of a command line.

    Args:
        compiled: For this very interpreter, which then starts in half the time; else for any Python 3.11 or later.
    """
    here = Path(__file__).parent
    sources = []
    for name in _MODULES:
        path = here.joinpath(*name.split(".")[2:]).with_suffix(".py")
        sources.append((name, path.read_text(encoding="utf-8")))
    if not compiled:
        return _LOADER.format(unpack=_SOURCE.format(data=sources))
    codes = [(name, compile(text, f"<{name}>", "exec", dont_inherit=True)) for name, text in sources]
    data = base64.b64encode(zlib.compress(marshal.dumps(codes)))
    return _LOADER.format(unpack=_COMPILED.format(data=data))
