"""Calibration: how verdicts agree with labels, by item and by verifier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

KAPPA = 0.8
FALSE_ACCEPT = 0.01
"""Below this kappa, or above this share of accepted failures, an item should not pay a reward."""


@dataclass
class Agreement:
    """A confusion table: labels in rows, verdicts in columns; nulls apart."""

    right_pass: int = 0
    false_pass: int = 0
    lost_pass: int = 0
    right_fail: int = 0
    nulls: int = 0

    def add(self, label: bool, verdict: bool | None) -> None:
        """Count one item."""
        if verdict is None:
            self.nulls += 1
        elif label:
            self.right_pass += verdict
            self.lost_pass += not verdict
        else:
            self.false_pass += verdict
            self.right_fail += not verdict

    @property
    def judged(self) -> int:
        """Items with a verdict."""
        return self.right_pass + self.false_pass + self.lost_pass + self.right_fail

    @property
    def agreement(self) -> float | None:
        """Share of judged items on which both say the same; None if none was judged."""
        return (self.right_pass + self.right_fail) / self.judged if self.judged else None

    @property
    def false_accept(self) -> float | None:
        """Share of failures that were accepted; None if there was no failure."""
        failures = self.false_pass + self.right_fail
        return self.false_pass / failures if failures else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None where both always say the same one thing, so that chance explains everything."""
        if not self.judged:
            return None
        n = self.judged
        labelled, accepted = self.right_pass + self.lost_pass, self.right_pass + self.false_pass
        chance = (labelled * accepted + (n - labelled) * (n - accepted)) / (n * n)
        observed = (self.right_pass + self.right_fail) / n
        return None if chance == 1 else (observed - chance) / (1 - chance)

    @property
    def trustworthy(self) -> bool:
        """Whether verdicts of this kind may pay a reward."""
        kappa_fine = (self.kappa is None and self.agreement == 1) or (self.kappa or 0) >= KAPPA
        return bool(self.judged) and kappa_fine and (self.false_accept or 0) <= FALSE_ACCEPT

    def row(self) -> dict[str, float | int | bool | None]:
        """Return everything by name."""
        counts = {
            name: getattr(self, name) for name in ("right_pass", "false_pass", "lost_pass", "right_fail", "nulls")
        }
        measures = {name: getattr(self, name) for name in ("agreement", "kappa", "false_accept", "trustworthy")}
        return {"n": self.judged + self.nulls, **counts, **measures}


@dataclass(frozen=True)
class Compared:
    """One labelled item with its verdict."""

    item: str
    verifier: str
    label: bool
    verdict: bool | None


def tables(compared: Iterable[Compared]) -> dict[str, dict[str, Agreement]]:
    """Return agreement by item, by verifier (`judge`, `check`) and over all."""
    out: dict[str, dict[str, Agreement]] = {"item": {}, "verifier": {}, "all": {"all": Agreement()}}
    for one in compared:
        kind = one.verifier.partition(":")[0]
        for table, name in (("item", one.item), ("verifier", kind), ("all", "all")):
            out[table].setdefault(name, Agreement()).add(one.label, one.verdict)
    return out
