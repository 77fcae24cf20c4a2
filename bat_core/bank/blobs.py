"""Sealed workspaces wherever the bank lies: whether one is whole, and copying a bank with all of them."""

from __future__ import annotations

from collections.abc import Callable

from bat_core.bank.place import Place
from bat_core.bank.store import generations, manifest_of, part_of
from bat_core.bank.tables import COLUMNS, decode
from bat_core.errors import SynthesisError
from bat_core.model.base import digest_of
from bat_core.model.run import BankReport
from bat_core.sandboxes.tarball import BadTar
from bat_core.sandboxes.tarball import decode as unpack
from bat_core.sandboxes.tree import hash_of_nodes


def name_of(root: str) -> str:
    """Return where in a bank the workspace with that tree hash lies."""
    digest = root.removeprefix("sha256:")
    return f"snapshots/{digest[:2]}/{digest}.tar"


def unsound(place: Place, root: str) -> str:
    """Return what is wrong with a workspace; empty if nothing."""
    try:
        return _wrong(place.read(name_of(root)), root)
    except OSError as error:
        return f"its workspace can't be read: {type(error).__name__}"


def copy(source: str, target: str, progress: Callable[[int, int], None] = lambda done, total: None) -> BankReport:
    """Copy a bank, verifying what is read; the target is a bank when all is there.

    Raises:
        SynthesisError: If something of the source is damaged or missing.
    """
    from bat_core.bank.store import report_of

    here, there = Place(source), Place(target)
    for number in generations(source):
        part, manifest = Place(part_of(source, number)), manifest_of(part_of(source, number))
        tables = {name: part.read(name) for name in COLUMNS}
        for name, data in tables.items():
            if digest_of(data) != manifest.files.get(name):
                raise SynthesisError(f"{part}/{name} is damaged", remedy="run `bat bank check` on it")
        roots = sorted({row["snapshot"] for row in decode(tables["states.parquet"], ["snapshot"])})
        for done, root in enumerate(roots, 1):
            _copy_blob(here, there, root)
            progress(done, len(roots))
        into = Place(part_of(target, number))
        for name, data in tables.items():
            into.write(name, data)
        into.write("manifest.json", part.read("manifest.json"))
    return report_of(target)


def _copy_blob(here: Place, there: Place, root: str) -> None:
    name = name_of(root)
    if there.has(name) and not _wrong(there.read(name), root):
        return
    data = here.read(name)
    if why := _wrong(data, root):
        raise SynthesisError(f"{here}/{name}: {why}", remedy="run `bat bank check` on it")
    there.write(name, data)


def _wrong(data: bytes, root: str) -> str:
    try:
        return "" if hash_of_nodes(unpack(data)) == root else "its workspace has another hash"
    except BadTar as error:
        return f"its workspace is damaged: {error}"
