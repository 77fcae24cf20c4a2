"""Byte code for sources that will lie on a read-only file system, the same bytes each time.

It is made by an interpreter that does nothing else and hashes strings without luck, and it isn't checked against
the sources when it is loaded.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping

_COMPILE = """
import importlib._bootstrap_external as e, importlib.util, json, struct, sys, warnings
warnings.simplefilter("ignore")
for path, source in json.load(sys.stdin):
    with open(source, "rb") as stream:
        text = stream.read()
    try:
        code = compile(text, "/" + path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):
        continue
    data = bytes(e._code_to_hash_pyc(code, importlib.util.source_hash(text), False))
    name = path.encode("utf-8", "surrogateescape")
    sys.stdout.buffer.write(struct.pack(">II", len(name), len(data)) + name + data)
"""


def compiled(sources: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of a `.pyc` for each source that compiles, sorted by path.

    Args:
        sources: Path in the image to path on this host.
    """
    if not sources:
        return
    argv = [sys.executable, "-s", "-S", "-B", "-c", _COMPILE]
    asked = json.dumps(sorted(sources.items())).encode()
    env = {"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"}
    answer = subprocess.run(argv, input=asked, capture_output=True, check=True, env=env, cwd="/").stdout
    at = 0
    while at < len(answer):
        name_size, size = struct.unpack_from(">II", answer, at)
        at += 8
        name = answer[at : at + name_size].decode("utf-8", "surrogateescape")
        yield _cache_path(name), answer[at + name_size : at + name_size + size]
        at += name_size + size


def _cache_path(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
