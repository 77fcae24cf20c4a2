"""A workspace that is a temporary folder of the host, for backends without file systems of their own."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bat_core.model.sandbox import SandboxSpec
from bat_core.sandboxes.environment import environment
from bat_core.sandboxes.hostpython import host_python
from bat_core.sandboxes.owner import parse, this_process

_END = "~"  # of the owner: no random name holds it, as one may hold an underscore


class HostFolder(NamedTuple):
    """The folder of one sandbox, named after its owner."""

    top: Path

    @classmethod
    def make(cls, prefix: str) -> HostFolder:
        """Return a new folder with an empty workspace and scratch."""
        owner = str(this_process()).replace("/", "+")
        made = cls(Path(tempfile.mkdtemp(prefix=f"{prefix}{owner}{_END}")).resolve())
        for place in (made.workspace, made.scratch):
            place.mkdir(mode=0o700)
        return made

    @property
    def workspace(self) -> Path:
        """Where commands run."""
        return self.top / "workspace"

    @property
    def scratch(self) -> Path:
        """What they have as temporary folder."""
        return self.top / "tmp"

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.top, ignore_errors=True)

    def environment(self, spec: SandboxSpec, path: str) -> dict[str, str]:
        """Return the environment of commands, with `path` behind the toolbelt."""
        own = environment(spec, path, str(self.workspace), toolbelt_of(spec))
        return {"TMPDIR": str(self.scratch)} | own

    def mapped(self, spec: SandboxSpec) -> functools.partial[str]:
        """Return what rewrites text that names `/workspace` or `/toolbelt` to where these lie."""
        belt = toolbelt_of(spec)
        return functools.partial(_mapped, {"/workspace": str(self.workspace)} | ({"/toolbelt": belt} if belt else {}))


def reap(prefix: str) -> Iterator[str]:
    """Remove the folders of processes that are certainly no more, and nothing else; yield their paths."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        owner = parse(folder.name.removeprefix(prefix).rpartition(_END)[0].replace("+", "/"))
        if owner is not None and owner.dead and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
            yield str(folder)


def toolbelt_of(spec: SandboxSpec) -> str:
    """Return where the toolbelt lies on the host, empty if there is none."""
    return os.path.realpath(spec.toolbelt) if spec.toolbelt else ""


def import_paths(spec: SandboxSpec) -> Sequence[str]:
    """Return the folders from which the agent's Python imports: the toolbelt, then the packages of ours."""
    packages = [source for source, inside in host_python().folders if inside in host_python().site]
    return [toolbelt_of(spec), *packages] if spec.toolbelt else packages


def _mapped(places: Mapping[str, str], text: str) -> str:
    for written, meant in places.items():
        text = text.replace(written, meant)
    return text
