"""The default curriculum: practise the weakest stage, keep what is better than the best so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bat_core.config.schema import Config
from bat_core.curriculum.gate import checks, gain_of
from bat_core.curriculum.target import choose_target
from bat_core.hooks.curriculum import CurriculumPolicy
from bat_core.model.decision import Check, Decision, Signals
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import History
from bat_core.model.mixture import Mixture
from bat_core.model.stage import Stage

Outcome = Literal["promoted", "held", "rolled_back"]
FATAL = ("catastrophic", "finite", "kl")


class WeakestStage(CurriculumPolicy):
    """Prescribes the weakest stage in the exact shares of the configuration; decides by the gate.

    Args:
        config: The run's configuration.
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    def prescribe(self, history: History, stages: Sequence[Stage]) -> Mixture:
        """Return the next mixture."""
        target = choose_target(history, stages, restart=self._config.gate.on_hold == "restart")
        shares, groups = self._config.mixture, self._config.train.groups
        return Mixture(
            round=len(history.rounds) + 1,
            target=target.stage,
            groups={
                "target": round(shares.target * groups),
                "mix": round(shares.mix * groups),
                "e2e": round(shares.e2e * groups),
            },
            mix=tuple(stage.id for stage in stages if stage.id != target.stage),
            reason=target.reason,
        )

    def decide(self, history: History, diagnosis: Diagnosis, signals: Signals, stages: Sequence[Stage]) -> Decision:
        """Return the decision on a candidate, and whether the run is over."""
        found = checks(diagnosis, history.best, signals, stages, self._config.gate)
        gain = gain_of(diagnosis)
        outcome, reason = self._outcome(history, found, gain, signals)
        number = len(history.rounds) + 1
        last = number >= self._config.loop.rounds
        return Decision(
            round=number,
            outcome=outcome,
            gain=gain,
            checks=tuple(found),
            reason=reason,
            stop=last,
            stop_reason=f"all {self._config.loop.rounds} rounds done" if last else "",
        )

    def _outcome(
        self, history: History, found: Sequence[Check], gain: float | None, signals: Signals
    ) -> tuple[Outcome, str]:
        broken = [check for check in found if not check.ok]
        fatal = [check for check in broken if check.name in FATAL]
        if fatal:
            return "rolled_back", signals.reason or f"{fatal[0].name} {_said(fatal[0])}"
        if gain is not None and gain > 0 and not broken:
            return "promoted", f"gain {100 * gain:+.1f} points over the best so far"
        why = f"gain {100 * (gain or 0):+.1f} points is not above 0"
        if broken:
            why = f"{broken[0].name} {_said(broken[0])}"
        waiting = 1 + _held_since(history)
        if waiting >= self._config.gate.patience:
            return "rolled_back", f"{waiting} rounds without a promotion; {why}"
        return "held", why


def _held_since(history: History) -> int:
    """Return how many rounds in a row, up to the last, were held."""
    count = 0
    for record in reversed(history.rounds):
        if record.decision.outcome != "held":
            break
        count += 1
    return count


def _said(check: Check) -> str:
    if check.value is None:
        return "could not be measured" if check.name != "finite" else "training metrics are not finite"
    return f"{check.value:+.3f} is beyond {check.limit:+.3f}"
