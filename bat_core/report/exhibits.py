"""A few rollouts of the last round, chosen to be telling: turn by turn, beside their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bat_core.errors import RunError
from bat_core.evolve.records import read_rollouts
from bat_core.model.base import JsonObject
from bat_core.model.message import Message
from bat_core.model.reward import Reward, StageScore
from bat_core.model.rollout import Rollout
from bat_core.model.stage import E2E
from bat_core.model.state import StageState
from bat_core.report.reading import Run, round_folder
from bat_core.report.wording import NOT_JUDGED, capped, number

CODE, OBSERVATION, REASON, TURNS = 4000, 2000, 300, 40


@dataclass(frozen=True)
class Turn:
    """One message: what was said, what was run, or what came back."""

    who: str
    text: str
    code: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Verdict:
    """One item as a reader sees it."""

    item: str
    criterion: str
    result: str
    evidence: str
    claimed: bool
    reason: str


@dataclass(frozen=True)
class StageVerdicts:
    """A stage's score and the items behind it."""

    stage: str
    score: str
    reason: str
    verdicts: Sequence[Verdict]


@dataclass(frozen=True)
class Exhibit:
    """A rollout, why it is shown, and everything its reward was made of."""

    why: str
    round: int
    state: str
    track: str
    stratum: str
    end: str
    count: int
    reward: str
    evidence: str
    task: str
    reason: str
    turns: Sequence[Turn]
    left_out: int
    stages: Sequence[StageVerdicts]


Row = JsonObject
CHOICES: Sequence[tuple[str, Callable[[Row], bool], Callable[[Row], float]]] = (
    ("a breach", lambda row: bool(row["breach"]), lambda row: 0.0),
    ("not judged", lambda row: row["reward"] is None, lambda row: 0.0),
    ("the best", lambda row: row["reward"] is not None, lambda row: float(row["reward"])),
    ("the worst", lambda row: row["reward"] is not None and not row["breach"], lambda row: -float(row["reward"])),
    ("end to end", lambda row: row["focus"] == E2E, lambda row: float(row["reward"] or 0)),
)
"""Why a rollout is shown, which ones qualify, and which of them comes first."""
ORDER = ("the best", "the worst", "end to end", "a breach", "not judged")


def exhibits(run: Run) -> list[Exhibit]:
    """Return the rollouts to show; none if no round has been trained or its table is gone.

    Raises:
        RunError: If the table is damaged.
    """
    trained = [one.number for one in run.rounds if one.training is not None]
    if not trained:
        return []
    folder = round_folder(run.path, trained[-1])
    try:
        chosen = choose(read_rollouts(folder))
        criteria = _criteria(run.path / "bank" / "states.parquet", [row["state"] for _, row in chosen])
        return [_exhibit(why, trained[-1], row, criteria) for why, row in chosen]
    except (OSError, ValidationError, KeyError, ValueError) as error:
        first = " ".join(str(error).split())[:200]
        raise RunError(
            f"{folder / 'rollouts.parquet'} is damaged: {first}",
            remedy="restore it, or remove it to get a page without",
        ) from error


def choose(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return the telling rows with the reason for each; no row twice, ties to the earliest."""
    found: dict[str, int] = {}
    for why, qualifies, key in CHOICES:
        free = [n for n, row in enumerate(rows) if n not in found.values() and qualifies(row)]
        if free:
            found[why] = max(free, key=lambda n: (key(rows[n]), -n))
    return [(why, rows[found[why]]) for why in ORDER if why in found]


def _criteria(path: Path, states: Sequence[str]) -> Mapping[str, str]:
    """Return what the items of these states ask, from the bank; nothing if it is not there."""
    import pyarrow.parquet as pq

    if not path.is_file() or not states:
        return {}
    table = pq.read_table(path, columns=["json"], filters=[("id", "in", list(states))])
    read = [StageState.model_validate_json(text) for text in table.column("json").to_pylist()]
    return {item.id: item.criterion for state in read for rubric in state.rubrics for item in rubric.items}


def _exhibit(why: str, number_: int, row: Row, criteria: Mapping[str, str]) -> Exhibit:
    rollout = Rollout.model_validate_json(row["rollout"])
    reward = Reward.model_validate_json(row["verdicts"])
    return Exhibit(
        why=why,
        round=number_,
        state=rollout.state,
        track=str(row["track"]),
        stratum=str(row["stratum"]),
        end=rollout.end if not rollout.reason else f"{rollout.end}: {capped(rollout.reason, REASON)}",
        count=rollout.turns,
        reward=NOT_JUDGED if reward.value is None else number(reward.value),
        evidence=number(reward.evidence, 2),
        task="" if reward.task is None else number(reward.task),
        reason=capped(reward.breach or reward.reason, REASON),
        turns=[_turn(message) for message in rollout.messages[:TURNS]],
        left_out=max(0, len(rollout.messages) - TURNS),
        stages=[_stage(stage, criteria) for stage in reward.stages],
    )


def _turn(message: Message) -> Turn:
    code = []
    for call in message.tool_calls:
        language, text = call.arguments.get("language"), call.arguments.get("code")
        if isinstance(text, str) and isinstance(language, str):
            code.append((language, capped(text, CODE)))
        else:
            code.append((call.name, capped(str(call.arguments), CODE)))
    return Turn(message.role, capped(message.content, OBSERVATION if message.role == "tool" else CODE), code)


def _stage(stage: StageScore, criteria: Mapping[str, str]) -> StageVerdicts:
    spelled = {True: "pass", False: "fail", None: NOT_JUDGED}
    return StageVerdicts(
        stage=stage.stage,
        score=NOT_JUDGED if stage.score is None else number(stage.score),
        reason=capped(stage.reason, REASON),
        verdicts=[
            Verdict(
                v.item,
                criteria.get(v.item, ""),
                spelled[v.passed],
                number(v.evidence, 2),
                v.claimed,
                capped(v.reason, REASON),
            )
            for v in stage.verdicts
        ],
    )
