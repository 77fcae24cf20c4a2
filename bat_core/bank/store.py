"""The bank in storage: parquet tables, a manifest with digests, snapshots beside them; generations below."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bat_core.bank.counts import added, counted
from bat_core.bank.place import Place
from bat_core.bank.tables import COLUMNS, Prompt, Rejection, decode, encode, slice_row, state_row
from bat_core.errors import SnapshotMismatch, SynthesisError
from bat_core.model.base import JsonObject, Value, digest_of
from bat_core.model.run import BankReport
from bat_core.model.state import StageState
from bat_core.model.training import Slice
from bat_core.sandboxes.snapshots import SnapshotStore

REBUILD = "remove the bank folder and run again; it is rebuilt from the seed"


class Manifest(Value):
    """What makes tables a bank: the report, digests of all files, and of what they were made from.

    Attributes:
        report: Counts of this generation alone.
        files: Digest by name of table.
        request: Digest of all that the generation was made from.
        after: Digest of the bank that this generation was added to; empty of the first.
    """

    report: BankReport
    files: dict[str, str]
    request: str = ""
    after: str = ""


@dataclass(frozen=True)
class Bank:
    """A bank up to some generation, read into memory."""

    report: BankReport
    states: Sequence[StageState]
    slices: Sequence[Slice]


@dataclass(frozen=True)
class Content:
    """What is written as one generation."""

    states: Sequence[StageState]
    slices: Sequence[Slice]
    rejected: Sequence[Rejection] = ()
    tasks: int = 0
    prompts: Sequence[Prompt] = ()
    missing: dict[str, str] | None = None
    e2e: dict[str, int] | None = None
    asked: int = 0


def part_of(bank: str | Path, generation: int) -> str:
    """Return where a generation's tables lie."""
    return str(bank) if generation == 1 else f"{bank}/generations/{generation:04d}"


def write(
    folder: str | Path,
    states: Sequence[StageState],
    slices: Sequence[Slice],
    rejected: Sequence[Rejection],
    tasks: int,
    request: str = "",
) -> BankReport:
    """Write a first generation. See `write_part`."""
    return write_part(folder, 1, Content(states, slices, rejected, tasks), request, None)


def write_part(
    bank: str | Path, generation: int, content: Content, request: str, before: BankReport | None
) -> BankReport:
    """Write all tables of a generation and, last, the manifest that makes them one; return the whole bank's report.

    Args:
        bank: The bank.
        generation: Its number.
        content: What is in it.
        request: The digest of all that it was made from, by which `complete` knows it again.
        before: The report of the bank so far.
    """
    place = Place(part_of(bank, generation))
    tables = {
        "states.parquet": [state_row(state) for state in content.states],
        "slices.parquet": [slice_row(one) for one in content.slices],
        "rejected.parquet": [vars(one) for one in content.rejected],
        "prompts.parquet": [vars(one) for one in content.prompts],
    }
    files = {}
    for name, rows in tables.items():
        data = encode(name, rows)
        files[name] = digest_of(data)
        place.write(name, data)
    report = counted(content.states, content.slices, content.rejected, content.prompts, content.tasks)
    found = {
        "missing": content.missing or {},
        "e2e": content.e2e or {},
        "generation": generation,
        "asked": content.asked,
    }
    report = report.model_copy(update=found)
    after = before.digest if before else ""
    manifest = Manifest(report=report, files=files, request=request, after=after)
    place.write("manifest.json", manifest.model_dump_json(indent=1).encode())
    return added(before, report)


def read(bank: str | Path, generation: int | None = None) -> Bank:
    """Read a bank up to a generation (all by default) and verify every digest, those of local workspaces too.

    Raises:
        SynthesisError: If a file is missing, truncated or altered; names it.
        SnapshotMismatch: If that file is a snapshot.
    """
    states: list[StageState] = []
    slices: list[Slice] = []
    report: BankReport | None = None
    for number in generations(bank)[:generation]:
        place, manifest = Place(part_of(bank, number)), manifest_of(part_of(bank, number))
        if report is not None and manifest.after != report.digest:
            raise SynthesisError(f"{place} was added to another bank", remedy=REBUILD)
        for name in COLUMNS:
            _verify(place, name, manifest.files.get(name, "nothing"))
        states += [StageState.model_validate_json(row) for row in _column(place, "states.parquet")]
        slices += [Slice.model_validate_json(row) for row in _column(place, "slices.parquet")]
        report = added(report, manifest.report)
    assert report is not None, "generations() has found one"
    if generation is not None and report.generation != generation:
        raise SynthesisError(f"{bank} has no generation {generation}", remedy="run `bat evolve` again")
    if Place(bank).is_local:
        snapshots = SnapshotStore(Place(bank).folder / "snapshots")
        for ref in {state.snapshot.root: state.snapshot for state in states}.values():
            snapshots.tar(ref)  # else a damaged one would make lost rollouts, and nobody would know why
    return Bank(report, states, slices)


def generations(bank: str | Path) -> list[int]:
    """Return the numbers of the complete generations, up to the first that is missing.

    Raises:
        SynthesisError: If there is not even a first.
    """
    manifest_of(bank)
    found, below = [1], Place(bank).at("generations")
    while below.has(f"{found[-1] + 1:04d}/manifest.json"):
        found.append(found[-1] + 1)
    return found


def complete(bank: str | Path, request: str, generation: int = 1) -> BankReport | None:
    """Return the report of that generation if it was made for this request and every digest holds, else None."""
    try:
        made = manifest_of(part_of(bank, generation)).request == request
        return read(bank, generation).report if made else None
    except (SynthesisError, SnapshotMismatch):
        return None


def report_of(bank: str | Path) -> BankReport:
    """Return the report of the whole bank, without reading its tables. Raises `SynthesisError` where there is none."""
    report: BankReport | None = None
    for number in generations(bank):
        report = added(report, manifest_of(part_of(bank, number)).report)
    assert report is not None
    return report


def read_manifest(folder: str | Path) -> JsonObject:
    """Return the manifest of a bank's first generation. Raises `SynthesisError` where there is none."""
    return manifest_of(folder).model_dump(mode="json")


def read_rejections(bank: str | Path) -> list[JsonObject]:
    """Return the rows of the rejection log."""
    return _rows(bank, "rejected.parquet")


def read_prompts(bank: str | Path, generation: int | None = None) -> list[Prompt]:
    """Return the prompts of all tasks up to a generation."""
    return [Prompt(**row) for row in _rows(bank, "prompts.parquet", generation)]


def discard_after(bank: Path, generation: int) -> None:
    """Remove generations behind one, complete or not: nobody names them."""
    for path in sorted((bank / "generations").glob("[0-9]*")):
        if int(path.name) > generation:
            shutil.rmtree(path)


def discard(folder: Path) -> None:
    """Remove an incomplete bank."""
    shutil.rmtree(folder, ignore_errors=True)


def _rows(bank: str | Path, name: str, generation: int | None = None) -> list[JsonObject]:
    numbers = generations(bank)[:generation]
    return [row for number in numbers for row in decode(Place(part_of(bank, number)).read(name))]


def manifest_of(folder: str | Path) -> Manifest:
    """Return the manifest of one generation's folder. Raises `SynthesisError` where there is none."""
    place = Place(folder)
    try:
        return Manifest.model_validate_json(place.read("manifest.json"))
    except OSError as error:
        raise SynthesisError(
            f"no complete bank in {folder}: {error}", remedy="run `bat bank build` or `bat evolve` again"
        ) from error
    except ValueError as error:
        raise SynthesisError(
            f"no complete bank in {folder}: {folder}/manifest.json is damaged", remedy=REBUILD
        ) from error


def _verify(place: Place, name: str, digest: str) -> None:
    try:
        found = digest_of(place.read(name))
    except OSError as error:
        raise SynthesisError(
            f"{place}/{name} can't be read: {error}", remedy="remove the bank folder and run again"
        ) from error
    if found != digest:
        raise SynthesisError(
            f"{place}/{name} is damaged: its digest is {found[:19]}, the manifest says {digest[:19]}", remedy=REBUILD
        )


def _column(place: Place, name: str) -> list[str]:
    return [row["json"] for row in decode(place.read(name), ["json"])]
