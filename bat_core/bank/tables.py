"""The bank's tables: columns, rows, and parquet that any reader takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from bat_core.model.base import JsonObject, digest_of
from bat_core.model.state import StageState
from bat_core.model.training import Slice

COLUMNS = {
    "states.parquet": ("id", "focus", "track", "stratum", "task", "snapshot", "contract", "digest", "json"),
    "slices.parquet": ("id", "trajectory", "stage", "source", "digest", "json"),
    "rejected.parquet": ("content", "phase", "rule", "kind", "path", "start", "end", "reason", "cell"),
    "prompts.parquet": ("task", "prompt", "sketch"),
}
OFFSETS = ("start", "end")
OVERRIDDEN = "override"
"""Phase of a sample that was admitted although a rule fired."""


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
    cell: str = ""


@dataclass(frozen=True)
class Prompt:
    """What a task looks like to a policy: the digest of its normalised text, and a sketch unless it says too little."""

    task: str
    prompt: str
    sketch: str


def state_row(state: StageState) -> JsonObject:
    """Return a state with the columns by which it is found."""
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


def slice_row(one: Slice) -> JsonObject:
    """Return a slice with the columns by which it is found."""
    return {
        "id": one.id,
        "trajectory": one.trajectory,
        "stage": one.stage,
        "source": one.source,
        "digest": digest_of(one),
        "json": one.model_dump_json(),
    }


def encode(name: str, rows: Sequence[JsonObject]) -> bytes:
    """Return rows as parquet with the columns of that table, also where there is no row."""
    import pyarrow as pa

    return parquet(rows, pa.schema({one: pa.int64() if one in OFFSETS else pa.string() for one in COLUMNS[name]}))


def parquet(rows: Sequence[JsonObject], schema: Any) -> bytes:
    """Return rows as a parquet file; without rows it has no row group, since readers stumble over an empty one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = BytesIO()
    with pq.ParquetWriter(held, schema) as writer:
        if rows:
            writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))
    return held.getvalue()


def decode(data: bytes, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a parquet file."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(BytesIO(data), columns=columns).to_pylist()
    return rows
