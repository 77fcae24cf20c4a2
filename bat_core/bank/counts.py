"""A bank's report: counts of one generation, and of one added to what was there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bat_core.bank.tables import OVERRIDDEN, Prompt, Rejection
from bat_core.model.base import digest_of
from bat_core.model.run import BankReport
from bat_core.model.state import StageState
from bat_core.model.training import Slice

DUPLICATE = "near-copy"


def cell_of(focus: str, track: str, stratum: str) -> str:
    """Return the name of a cell."""
    return f"{focus}/{track}/{stratum}"


def counted(
    states: Sequence[StageState],
    slices: Sequence[Slice],
    rejected: Sequence[Rejection],
    prompts: Sequence[Prompt],
    tasks: int,
) -> BankReport:
    """Return the counts of what is given."""
    cells = Counter(cell_of(state.focus, state.task.track, state.stratum.value) for state in states)
    overrides = tuple(one.reason for one in rejected if one.phase == OVERRIDDEN)
    rejected = [one for one in rejected if one.phase != OVERRIDDEN]
    rules = Counter(one.rule for one in rejected)
    return BankReport(
        digest=digest_of([[state.id, state.digest] for state in states] + [[one.id, digest_of(one)] for one in slices]),
        tasks=tasks,
        states=len(states),
        slices=len(slices),
        rejected=len(rejected),
        cells=dict(sorted(cells.items())),
        rejections=dict(sorted(rules.items())),
        overrides=overrides,
        duplicates=rules[DUPLICATE],
        distinct=distinct(prompts),
    )


def distinct(prompts: Sequence[Prompt]) -> float | None:
    """Return the share of different prompts among those that say enough to be compared, None if there are none."""
    told = [one.prompt for one in prompts if one.sketch]
    return len(set(told)) / len(told) if told else None


def added(before: BankReport | None, part: BankReport) -> BankReport:
    """Return the report of a bank to which a generation was added."""
    if before is None:
        return part
    cells = _sum(before.cells, part.cells)
    return BankReport(
        digest=digest_of([before.digest, part.digest]),
        generation=part.generation,
        asked=before.asked + part.asked,
        tasks=before.tasks + part.tasks,
        states=before.states + part.states,
        slices=before.slices + part.slices,
        rejected=before.rejected + part.rejected,
        cells=cells,
        rejections=_sum(before.rejections, part.rejections),
        overrides=(*before.overrides, *part.overrides),
        missing={cell: why for cell, why in {**before.missing, **part.missing}.items() if cell not in cells},
        e2e=_sum(before.e2e, part.e2e),
        duplicates=before.duplicates + part.duplicates,
        distinct=_mean((before.tasks, before.distinct), (part.tasks, part.distinct)),
    )


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(one) + Counter(other)).items()))


def _mean(*shares: tuple[int, float | None]) -> float | None:
    """Return the mean by tasks; a later generation leaves out copies of earlier ones, so that this is the share."""
    known = [(count, share) for count, share in shares if share is not None and count]
    total = sum(count for count, _ in known)
    return sum(count * share for count, share in known) / total if total else None
