"""A sandbox's image made of this host's own interpreter and tools, without a registry and with an id that repeats.

The layout is the one that the bubblewrap backend mounts: the interpreter at its own path, an environment at
`/opt/venv`, the shell's usual tools in `/usr/bin`. Of the installed packages those are in it that the spec preloads,
with what they depend on; the domain's toolbelt is a layer of its own at `/toolbelt`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from bat_core.sandboxes.docker.layer import Layer
from bat_core.sandboxes.hostpython import VENV, host_python

TOOLS = """
sh bash dash env true false test [ echo printf cat head tail tee wc sort uniq cut tr seq yes ls cp mv rm ln mkdir
rmdir mkfifo touch chmod chown stat du df dd truncate readlink realpath basename dirname pwd date sleep timeout nproc
id whoami uname hostname expr od md5sum sha1sum sha256sum base64 split paste join comm diff cmp patch grep egrep fgrep
sed awk mawk gawk find xargs tar gzip gunzip zcat bzip2 xz file which kill ps setsid nice nohup mktemp install sync tac
nl fold
"""
_LEFT_OUT = frozenset(
    {"__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data"}
)
_PASSWD = b"root:x:0:0::/:/bin/false\nagent:x:%d:%d::/workspace:/bin/sh\n"
_GROUP = b"root:x:0:\nagent:x:%d:\n"
_NEEDED = re.compile(r"(?:=> )?(/\S+) \(0x")


def system_layer(preload: Iterable[str], user: int) -> Layer:
    """Return everything but the toolbelt.

    Args:
        preload: Modules whose packages have to be in it; those that no installed package brings are left out.
        user: Number of the user that commands run as.
    """
    layer = Layer()
    for name in ("tmp", "workspace", "proc", "dev", "sys", "toolbelt"):
        layer.folder(f"/{name}", 0o1777 if name == "tmp" else 0o755)
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path(f"/{name}").is_symlink():
            layer.link(f"/{name}", str(Path(f"/{name}").readlink()))
    layer.data("/etc/passwd", _PASSWD % (user, user))
    layer.data("/etc/group", _GROUP % user)
    programs = [*_interpreter(layer), *_tools(layer), *_packages(layer, preload)]
    for library in _libraries(programs):
        inside = f"{os.path.realpath(os.path.dirname(library))}/{os.path.basename(library)}"  # noqa: PTH119, PTH120
        layer.file(inside, Path(library).resolve())
    return layer


def toolbelt_layer(toolbelt: Path) -> Layer:
    """Return the domain's toolbelt as a layer."""
    layer = Layer()
    for path in _walk(toolbelt.resolve()):
        layer.file(f"/toolbelt/{path.relative_to(toolbelt.resolve())}", path)
    return layer


def fingerprint(layers: Iterable[Layer]) -> str:
    """Return what changes when any source of the image does, without reading the sources."""
    digest = hashlib.sha256()
    for layer in layers:
        digest.update(layer.outline().encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:24]


def _interpreter(layer: Layer) -> Iterator[Path]:
    """Lay out the interpreter; yield what may need libraries."""
    python = host_python()
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    layer.file(str(program), program, executable=True)
    yield program
    library = Path(sysconfig.get_path("stdlib")).resolve()
    for path in _walk(library, {"site-packages", "dist-packages"}):
        if not path.name.endswith(".a"):
            layer.file(str(path), path)
            if ".so" in path.suffixes:
                yield path
    layer.data(f"{VENV}/pyvenv.cfg", python.config)
    for place, target in python.links:
        layer.link(place, target)


def _tools(layer: Layer) -> Iterator[Path]:
    for name in TOOLS.split():
        found = shutil.which(name, path="/usr/bin:/bin")
        if found:
            layer.file(f"/usr/bin/{name}", Path(found).resolve(), executable=True)
            yield Path(found).resolve()


def _packages(layer: Layer, preload: Iterable[str]) -> Iterator[Path]:
    """Lay out the files of the packages behind `preload`, and of what those require."""
    bringers = packages_distributions()
    wanted = [name for module in preload for name in bringers.get(module.partition(".")[0], ())]
    places = {os.path.realpath(source): inside for source, inside in host_python().folders}
    sites = [(source, inside) for source, inside in places.items() if inside in host_python().site]
    for one in _closure(wanted):
        for path in one.files or ():
            source = Path(os.path.realpath(str(one.locate_file(path))))
            inside = next((f"{to}/{source.relative_to(at)}" for at, to in sites if source.is_relative_to(at)), None)
            if inside and source.is_file() and not _LEFT_OUT.intersection(source.parts[-len(path.parts) :]):
                layer.file(inside, source)
                if ".so" in source.suffixes:
                    yield source


def _closure(names: Iterable[str]) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    waiting = sorted(set(names))
    while waiting:
        name = waiting.pop()
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue  # required under a condition that doesn't hold here
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in found:
            found[key] = one
            plain = [need for need in one.requires or () if "extra ==" not in need]
            waiting += [match[0] for need in plain if (match := re.match(r"[A-Za-z0-9._-]+", need))]
    return [found[key] for key in sorted(found)]


def _libraries(programs: Iterable[Path]) -> list[str]:
    """Return the shared libraries that `programs` need, as the loader finds them."""
    every = sorted({str(path) for path in programs})
    if not every:
        return []
    told = subprocess.run(["ldd", *every], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    return sorted({match[1] for line in told.stdout.splitlines() if (match := _NEEDED.search(line))})


def _walk(folder: Path, also_left_out: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the regular files below `folder` in an order that repeats."""
    left_out = _LEFT_OUT | set(also_left_out)
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in left_out)
        for name in sorted(files):
            path = Path(top) / name
            if path.is_file() and not name.endswith((".pyc", ".pyo")):
                yield path
