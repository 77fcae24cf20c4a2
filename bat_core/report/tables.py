"""The page's tables: headline, rounds with every check of the gate, the bank, counts and seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bat_core.model.decision import Check
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.run import BankReport
from bat_core.model.stage import E2E
from bat_core.model.training import TrainStats
from bat_core.report.reading import Round, Run
from bat_core.report.wording import NOT_YET, duration, gain, missing, number, points

SCORES = ("overall", "agentic", "task", "finished")
POOLS = ("target", "mix", "e2e")


@dataclass(frozen=True)
class Suite:
    """A suite's scores, cold start beside theta*."""

    name: str
    rows: Sequence[tuple[str, str, str]]
    n: str
    gain: str
    missing: Sequence[str]


@dataclass(frozen=True)
class CheckRow:
    """A check of the gate, spelled."""

    name: str
    value: str
    limit: str
    ok: bool


@dataclass(frozen=True)
class RoundRow:
    """A round, spelled."""

    number: int
    target: str
    why: str
    mixture: str
    reward: str
    kl: str
    k3: str
    overall: str
    gain: str
    stages: Mapping[str, str]
    outcome: str
    reason: str
    checks: Sequence[CheckRow]


@dataclass(frozen=True)
class BankTable:
    """Numbers of states by focus (rows), track and stratum (columns)."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[tuple[str, Sequence[int]]]


def suites(run: Run) -> list[Suite]:
    """Return held-out and blind scores, as far as they were measured."""
    promotion = run.promotion
    said = "no round was promoted"
    if promotion is not None:
        said = f"paired gain of round {promotion.number} over the best before it: {_overall(promotion.diagnosis)}"
    found = [_suite("held-out", run.coldstart, run.best, said)]
    before, after = run.blind
    if before is not None:
        said = "" if after is None else f"paired gain over the cold start: {_overall(after)}"
        found.append(_suite("blind", before, after, said))
    return found


def _overall(diagnosis: Diagnosis | None) -> str:
    return NOT_YET if diagnosis is None else gain(diagnosis.gains.get("overall"))


def _suite(name: str, before: Diagnosis | None, after: Diagnosis | None, said: str) -> Suite:
    lacking = [f"{who}: {missing(d)}" for who, d in (("cold start", before), ("best", after)) if d and _lacks(d)]
    known = [str(d.n) for d in (before, after) if d]
    return Suite(
        name=name,
        rows=[(score, _score(before, score), _score(after, score)) for score in SCORES],
        n=" and ".join(dict.fromkeys(known)),
        gain=said,
        missing=lacking,
    )


def _lacks(diagnosis: Diagnosis) -> bool:
    return diagnosis.invalid > 0 or any(getattr(diagnosis, score) is None for score in SCORES[:3])


def _score(diagnosis: Diagnosis | None, name: str) -> str:
    return NOT_YET if diagnosis is None else points(getattr(diagnosis, name))


def round_rows(run: Run) -> list[RoundRow]:
    """Return one row a round, as far as it went."""
    return [_round(one) for one in run.rounds]


def _round(one: Round) -> RoundRow:
    training, diagnosis, decision = one.training, one.diagnosis, one.decision
    return RoundRow(
        number=one.number,
        target=one.mixture.target,
        why=one.mixture.reason,
        mixture=_groups(one.mixture.groups),
        reward=number(training.reward_mean) if training else NOT_YET,
        kl=number(training.kl, 4) if training else NOT_YET,
        k3=number(training.kl_k3, 4) if training else NOT_YET,
        overall=_score(diagnosis, "overall"),
        gain=_overall(diagnosis),
        stages={} if diagnosis is None else {stage: points(score) for stage, score in diagnosis.stages.items()},
        outcome=decision.outcome if decision else "",
        reason=decision.reason if decision else "",
        checks=[_check(check) for check in decision.checks] if decision else [],
    )


def _groups(groups: Mapping[str, int]) -> str:
    """Return groups by pool in the method's order; the journal sorts keys by name."""
    order = [pool for pool in POOLS if pool in groups] + [pool for pool in groups if pool not in POOLS]
    return ", ".join(f"{pool} {groups[pool]}" for pool in order)


def _check(check: Check) -> CheckRow:
    said = "every value finite" if check.ok else "a value is not finite"
    value = said if check.name == "finite" else number(check.value)
    return CheckRow(check.name, value, "" if check.limit is None else number(check.limit), check.ok)


def bank_table(report: BankReport) -> BankTable:
    """Return the bank's cells as a table; a cell without states is 0, because it was counted."""
    cells = {tuple(name.split("/")): count for name, count in report.cells.items()}
    columns = sorted({(cell[1], cell[2]) for cell in cells})
    focuses = sorted({cell[0] for cell in cells}, key=lambda focus: (focus == E2E, focus))
    return BankTable(columns, [(focus, [cells.get((focus, *column), 0) for column in columns]) for focus in focuses])


def counts(run: Run) -> list[tuple[str, int]]:
    """Return what training went through, summed over the rounds done so far."""
    done = [one.training.stats for one in run.rounds if one.training]
    names = list(TrainStats.model_fields)
    return [(name.replace("_", " "), sum(getattr(stats, name) for stats in done)) for name in names] if done else []


def times(run: Run) -> list[tuple[str, str]]:
    """Return time by kind of phase, over all sittings, and in total."""
    rows = [(kind, duration(seconds)) for kind, seconds in run.seconds.items()]
    return [*rows, ("total", duration(sum(run.seconds.values())))] if rows else []
