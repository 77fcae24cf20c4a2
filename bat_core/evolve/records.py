"""What a round leaves behind for people: rollouts and metrics."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from bat_core.model.base import JsonObject
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.state import StageState


class RoundRecorder:
    """Collects the rollouts and metrics of a round and writes them as one table and one JSONL file."""

    def __init__(self) -> None:
        self.rows: list[JsonObject] = []
        self.metrics: list[JsonObject] = []

    def rollout(self, state: StageState, rollout: Rollout, reward: Reward) -> None:
        """Keep a scored rollout."""
        self.rows.append(
            {
                "state": state.id,
                "focus": state.focus,
                "track": state.task.track,
                "stratum": state.stratum.value,
                "index": rollout.index,
                "reward": reward.value,
                "evidence": reward.evidence,
                "end": rollout.end,
                "turns": rollout.turns,
                "policy_tokens": rollout.policy_tokens,
                "breach": reward.breach,
                "rollout": rollout.model_dump_json(),
                "verdicts": reward.model_dump_json(),
            }
        )

    def metric(self, step: int, values: JsonObject) -> None:
        """Keep the metrics of a step; non-finite values become null with their spelling beside them."""
        plain: JsonObject = {"step": step}
        for key, value in values.items():
            broken = isinstance(value, float) and not math.isfinite(value)
            plain[key] = None if broken else value
            if broken:
                plain[f"{key}_was"] = str(value)
        self.metrics.append(plain)

    def write(self, folder: Path) -> None:
        """Write `rollouts.parquet` and `metrics.jsonl`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(self.rows), folder / "rollouts.parquet")
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.metrics))


def read_rollouts(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a round's rollouts, none if the round has none."""
    import pyarrow.parquet as pq

    path = folder / "rollouts.parquet"
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist() if path.exists() else []
    return rows
