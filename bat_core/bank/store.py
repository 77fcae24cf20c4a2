"""The bank on disk: parquet tables, a manifest with digests, snapshots beside them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bat_core.errors import SynthesisError
from bat_core.model.base import JsonObject, digest_of
from bat_core.model.run import BankReport
from bat_core.model.state import StageState
from bat_core.model.training import Slice

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("states.parquet", "slices.parquet", "rejected.parquet")
OFFSETS = ("start", "end")
REJECTED = ("content", "phase", "rule", "kind", "path", *OFFSETS, "reason")


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


@dataclass(frozen=True)
class Bank:
    """A generation of the bank, read into memory."""

    report: BankReport
    states: Sequence[StageState]
    slices: Sequence[Slice]


def write(
    folder: Path, states: Sequence[StageState], slices: Sequence[Slice], rejected: Sequence[Rejection], tasks: int
) -> BankReport:
    """Write all tables and, last, the manifest that makes them a bank; each file appears only when complete."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_table(folder / "states.parquet", [_state_row(state) for state in states])
    _write_table(folder / "slices.parquet", [_slice_row(one) for one in slices])
    _write_table(folder / "rejected.parquet", [vars(one) for one in rejected], REJECTED)
    report = _report(states, slices, rejected, tasks)
    files = {name: digest_of((folder / name).read_bytes()) for name in TABLES}
    manifest = {"report": report.model_dump(mode="json"), "files": files}
    _replace(folder / "manifest.json", json.dumps(manifest, indent=1).encode())
    return report


def read(folder: Path) -> Bank:
    """Read a bank and verify every digest.

    Raises:
        SynthesisError: If a file is missing, truncated or altered; names it.
    """
    manifest = read_manifest(folder)
    for name, digest in manifest["files"].items():
        _verify(folder / name, digest)
    states = [StageState.model_validate_json(row) for row in _column(folder / "states.parquet", "json")]
    slices = [Slice.model_validate_json(row) for row in _column(folder / "slices.parquet", "json")]
    return Bank(BankReport.model_validate(manifest["report"]), states, slices)


def read_manifest(folder: Path) -> JsonObject:
    """Return the manifest of a bank. Raises `SynthesisError` where there is none."""
    path = folder / "manifest.json"
    try:
        manifest: JsonObject = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SynthesisError(
            f"no complete bank in {folder}: {error}", remedy="run `bat bank build` or `bat evolve` again"
        ) from error
    return manifest


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
            remedy="remove the bank folder and run again; it is rebuilt from the seed",
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


def _write_table(path: Path, rows: Sequence[JsonObject], columns: Sequence[str] = ()) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table: pa.Table = pa.Table.from_pylist(list(rows))
    if not rows and columns:
        table = pa.table(
            {name: pa.array([], pa.int64() if name in ("start", "end") else pa.string()) for name in columns}
        )
    partial = path.with_suffix(".partial")
    pq.write_table(table, partial)
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
    )
