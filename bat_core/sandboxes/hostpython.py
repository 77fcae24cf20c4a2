"""The host's own interpreter and packages, laid out for a sandbox that shares nothing else of the host.

Inside, `/opt/venv` is a virtual environment of the interpreter that runs us. The interpreter keeps its real
path, because shared builds know their library by it; commands only ever need `/opt/venv/bin`.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

VENV = "/opt/venv"


class HostPython(NamedTuple):
    """What to mount and link.

    Attributes:
        folders: Host folder to the path inside, both absolute.
        links: Path inside to what it points at.
        config: Content of the environment's `pyvenv.cfg`.
        site: Folder of packages, as seen inside.
    """

    folders: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    config: bytes
    site: tuple[str, ...]


@functools.cache
def host_python() -> HostPython:
    """Return the layout for the running interpreter."""
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    prefix = Path(sys.base_prefix).resolve()
    release = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [] if prefix.is_relative_to("/usr") else [(str(prefix), str(prefix))]
    if not program.is_relative_to("/usr") and not program.is_relative_to(prefix):
        folders.append((str(program.parent), str(program.parent)))
    packages = dict.fromkeys(os.path.realpath(sysconfig.get_path(kind)) for kind in ("purelib", "platlib"))
    packages = {folder: None for folder in packages if Path(folder).is_dir()}
    site = []
    for number, folder in enumerate(packages):
        inside = f"{VENV}/lib{'64' if number else ''}/{release}/site-packages"
        folders.append((folder, inside))
        site.append(inside)
    links = tuple((f"{VENV}/bin/{name}", str(program)) for name in ("python", "python3", release))
    config = f"home = {program.parent}\ninclude-system-site-packages = false\n".encode()
    return HostPython(tuple(folders), links, config, tuple(site))


def bare_environment(path: str, home: str) -> dict[str, str]:
    """Return the environment that every command starts with: nothing of the host's, and deterministic tools."""
    return {
        "PATH": path,
        "HOME": home,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
