"""Votes: several seeds or models; the majority decides, a split lowers the evidence, too few are null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bat_core.verify.toolbox.finding import Finding


@dataclass(frozen=True)
class Vote:
    """One answer, judged: whether it shows the item, how well its quote is borne out, or why it is missing."""

    yes: bool | None
    trust: float
    reason: str


def decide(votes: Sequence[Vote]) -> Finding:
    """Return the finding of all votes.

    A yes needs more than half of all votes that were asked for, so does a no. What can't be decided because votes are
    missing is null. A tie among full votes is a no: an item passes only if shown.
    """
    yes = [vote for vote in votes if vote.yes is True]
    no = [vote for vote in votes if vote.yes is False]
    missing = [vote for vote in votes if vote.yes is None]
    if 2 * len(yes) > len(votes):
        agreement = len(yes) / (len(yes) + len(no))
        found = Finding(True, f"{len(yes)} of {len(votes)} votes; {yes[0].reason}"[:300], claimed=True)
        found = found.lowered("quote", sum(vote.trust for vote in yes) / len(yes), yes[0].reason[:200])
        return _times(found, agreement)
    if 2 * len(no) >= len(votes) or (not missing and no):
        return Finding(False, f"{len(no)} of {len(votes)} votes; {no[0].reason}"[:300])
    return Finding(None, f"{len(missing)} of {len(votes)} votes are missing; {missing[0].reason}"[:300], evidence=0.0)


def _times(found: Finding, agreement: float) -> Finding:
    if agreement == 1.0:
        return found
    return Finding(found.passed, found.reason, found.claimed, found.evidence * agreement, found.slots)
