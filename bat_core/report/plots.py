"""Which curves the page shows: overall and stages by round, reward by step."""

from __future__ import annotations

from collections.abc import Callable

from bat_core.model.diagnosis import Diagnosis
from bat_core.report.curves import Curve, Point, curve
from bat_core.report.reading import Run
from bat_core.report.wording import points

Score = Callable[[Diagnosis], float | None]
START = "\N{GREEK SMALL LETTER THETA}\N{SUBSCRIPT ZERO}"


def overall_curve(run: Run) -> Curve:
    """Return overall of the cold start and of every candidate, with what was decided on it."""
    return curve("held-out overall by round", _by_round(run, lambda d: d.overall), (560, 240))


def stage_curves(run: Run) -> list[Curve]:
    """Return one small curve a stage, all on the scale of 0 to 100."""
    stages = list(run.coldstart.stages) if run.coldstart else []

    def score_of(stage: str) -> Score:
        return lambda diagnosis: diagnosis.stages.get(stage)

    return [curve(stage, _by_round(run, score_of(stage)), (230, 130), top=100.0) for stage in stages]


def _by_round(run: Run, score: Score) -> list[Point]:
    found = [] if run.coldstart is None else [_point(0, START, score(run.coldstart), "cold start", "coldstart")]
    for one in run.rounds:
        if one.diagnosis is not None:
            mark = one.decision.outcome if one.decision else ""
            what = mark.replace("_", " ") or "not decided"
            found.append(_point(one.number, str(one.number), score(one.diagnosis), what, mark))
    return found


def _point(x: float, name: str, value: float | None, what: str, mark: str) -> Point:
    return Point(x, None if value is None else 100 * value, name, f"{name}: {points(value)} ({what})", mark)


def reward_curve(run: Run) -> Curve | None:
    """Return mean reward by step over all rounds, walls between rounds; None if no step was logged."""
    found: list[Point] = []
    walls: list[float] = []
    for one in run.rounds:
        steps = {row["step"]: row["reward"] for row in one.metrics if "reward" in row}
        walls += [len(found) + 0.5] if found and steps else []
        for n, (step, value) in enumerate(steps.items()):
            note = f"round {one.number}, step {step}: {'not finite' if value is None else f'{value:.3f}'}"
            found.append(Point(len(found) + 1, value, f"r{one.number}" if n == 0 else "", note))
    return curve("mean reward by step", found, (560, 180), top=1.0, walls=walls) if found else None
