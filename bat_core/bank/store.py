"""The bank on disk: parquet tables, a manifest with digests, snapshots beside them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bat_core.errors import SnapshotMismatch, SynthesisError
from bat_core.model.base import JsonObject, Value, digest_of
from bat_core.model.run import BankReport
from bat_core.model.state import StageState
from bat_core.model.training import Slice
from bat_core.sandboxes.snapshots import SnapshotStore

COLUMNS = {
    "states.parquet": ("id", "focus", "track", "stratum", "task", "snapshot", "contract", "digest", "json"),
    "slices.parquet": ("id", "trajectory", "stage", "json"),
    "rejected.parquet": ("content", "phase", "rule", "kind", "path", "start", "end", "reason"),
}
OFFSETS = ("start", "end")
OVERRIDDEN = "override"
"""Phase of a sample that was admitted although a rule fired."""
REBUILD = "remove the bank folder and run again; it is rebuilt from the seed"


@dataclass(frozen=True)
class Rejection:
    """Why a sample did not enter; its content is there as a digest only."""

    content: str
    phase: str
    rule: str
    kind: str = ""
    path: str = ""
    start: int = 0
    end: int = 0
    reason: str = ""


class _Manifest(Value):
    report: BankReport
    files: dict[str, str]
    request: str = ""


@dataclass(frozen=True)
class Bank:
    """A generation of the bank, read into memory."""

    report: BankReport
    states: Sequence[StageState]
    slices: Sequence[Slice]


def write(
    folder: Path,
    states: Sequence[StageState],
    slices: Sequence[Slice],
    rejected: Sequence[Rejection],
    tasks: int,
    request: str = "",
) -> BankReport:
    """Write all tables and, last, the manifest that makes them a bank; each file appears only when complete.

    `request` is the digest of all that the bank was made from, by which `complete` knows it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_table(folder / "states.parquet", [_state_row(state) for state in states])
    _write_table(folder / "slices.parquet", [_slice_row(one) for one in slices])
    _write_table(folder / "rejected.parquet", [vars(one) for one in rejected])
    report = _report(states, slices, rejected, tasks)
    files = {name: digest_of((folder / name).read_bytes()) for name in COLUMNS}
    manifest = _Manifest(report=report, files=files, request=request)
    _replace(folder / "manifest.json", manifest.model_dump_json(indent=1).encode())
    return report


def read(folder: Path) -> Bank:
    """Read a bank and verify every digest, those of the workspaces in which its states begin too.

    Raises:
        SynthesisError: If a file is missing, truncated or altered; names it.
        SnapshotMismatch: If that file is a snapshot.
    """
    manifest = _manifest(folder)
    for name in COLUMNS:
        _verify(folder / name, manifest.files.get(name, "nothing"))
    states = [StageState.model_validate_json(row) for row in _column(folder / "states.parquet", "json")]
    slices = [Slice.model_validate_json(row) for row in _column(folder / "slices.parquet", "json")]
    snapshots = SnapshotStore(folder / "snapshots")
    for ref in {state.snapshot.root: state.snapshot for state in states}.values():
        snapshots.tar(ref)  # else a damaged one would make lost rollouts, and nobody would know why
    return Bank(manifest.report, states, slices)


def complete(folder: Path, request: str) -> BankReport | None:
    """Return the report of the bank in `folder` if it was made for this request and every digest holds, else None."""
    try:
        return read(folder).report if _manifest(folder).request == request else None
    except (SynthesisError, SnapshotMismatch):
        return None


def read_manifest(folder: Path) -> JsonObject:
    """Return the manifest of a bank. Raises `SynthesisError` where there is none."""
    return _manifest(folder).model_dump(mode="json")


def _manifest(folder: Path) -> _Manifest:
    path = folder / "manifest.json"
    try:
        return _Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SynthesisError(
            f"no complete bank in {folder}: {error}", remedy="run `bat bank build` or `bat evolve` again"
        ) from error
    except ValueError as error:
        raise SynthesisError(f"no complete bank in {folder}: {path} is damaged", remedy=REBUILD) from error


def read_rejections(folder: Path) -> list[JsonObject]:
    """Return the rows of the rejection log."""
    import pyarrow.parquet as pq

    rows: list[JsonObject] = pq.read_table(folder / "rejected.parquet").to_pylist()
    return rows


def discard(folder: Path) -> None:
    """Remove an incomplete bank."""
    shutil.rmtree(folder, ignore_errors=True)


def _verify(path: Path, digest: str) -> None:
    try:
        found = digest_of(path.read_bytes())
    except OSError as error:
        raise SynthesisError(f"{path} can't be read: {error}", remedy="remove the bank folder and run again") from error
    if found != digest:
        raise SynthesisError(
            f"{path} is damaged: its digest is {found[:19]}, the manifest says {digest[:19]}",
            remedy=REBUILD,
        )


def _column(path: Path, name: str) -> list[str]:
    import pyarrow.parquet as pq

    values: list[str] = pq.read_table(path, columns=[name]).column(name).to_pylist()
    return values


def _state_row(state: StageState) -> JsonObject:
    return {
        "id": state.id,
        "focus": state.focus,
        "track": state.task.track,
        "stratum": state.stratum.value,
        "task": state.task.id,
        "snapshot": state.snapshot.root,
        "contract": state.contract_digest,
        "digest": state.digest,
        "json": state.model_dump_json(),
    }


def _slice_row(one: Slice) -> JsonObject:
    return {"id": one.id, "trajectory": one.trajectory, "stage": one.stage, "json": one.model_dump_json()}


def _write_table(path: Path, rows: Sequence[JsonObject]) -> None:
    """Write rows with the columns of that table, also where there is no row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {name: pa.int64() if name in OFFSETS else pa.string() for name in COLUMNS[path.name]}
    partial = path.with_suffix(".partial")
    pq.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(kinds)), partial)
    partial.replace(path)


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _report(
    states: Sequence[StageState], slices: Sequence[Slice], rejected: Sequence[Rejection], tasks: int
) -> BankReport:
    cells: dict[str, int] = {}
    for state in states:
        cell = f"{state.focus}/{state.task.track}/{state.stratum.value}"
        cells[cell] = cells.get(cell, 0) + 1
    rules: dict[str, int] = {}
    overrides = tuple(one.reason for one in rejected if one.phase == OVERRIDDEN)
    rejected = [one for one in rejected if one.phase != OVERRIDDEN]
    for one in rejected:
        rules[one.rule] = rules.get(one.rule, 0) + 1
    return BankReport(
        digest=digest_of([[state.id, state.digest] for state in states] + [[one.id, digest_of(one)] for one in slices]),
        tasks=tasks,
        states=len(states),
        slices=len(slices),
        rejected=len(rejected),
        cells=dict(sorted(cells.items())),
        rejections=dict(sorted(rules.items())),
        overrides=overrides,
    )
