"""The rubric: which items a stage has, and when they apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bat_core.model.rubric import Rubric, RubricItem
from bat_medimaging.checks import s1, s2, s3, s4, s5
from bat_medimaging.checks.base import Check

Faults = frozenset[str]


def always(faults: Faults) -> bool:
    """Apply in every state."""
    return True


def if_any(*names: str) -> Callable[[Faults], bool]:
    """Apply where one of these faults is planted."""
    return lambda faults: bool(faults & set(names))


def unless(*names: str) -> Callable[[Faults], bool]:
    """Apply where none of these faults is planted."""
    return lambda faults: not faults & set(names)


@dataclass(frozen=True)
class Item:
    """A rubric item with its check. The outcome item of a stage weighs as much as its others together."""

    id: str
    criterion: str
    check: Check
    applies: Callable[[Faults], bool] = always
    outcome: bool = False

    @property
    def stage(self) -> str:
        """The stage it belongs to."""
        return self.id.split(".")[0]

    @property
    def name(self) -> str:
        """Name under which the domain registers the check."""
        return f"{self.stage.lower()}_{self.check.__name__}"


ITEMS = (
    Item("S1.a", "plan/plan.md covers all five stages", s1.plan_written),
    Item("S1.b", "plan names the model for all targets", s1.model_covers),
    Item("S1.c", "plan states the card's values", s1.facts_right, outcome=True),
    Item("S1.d", "the card was read", s1.card_read),
    Item("S1.e", "plan names a pilot case", s1.pilot_named),
    Item("S1.f", "every README conflict is named", s1.conflicts_named, if_any("P1", "P3")),
    Item("S1.g", "no conflict is named that isn't one", s1.conflicts_real),
    Item("S2.a", "hash and size of the weights were computed", s2.hash_shown),
    Item("S2.b", "an input header was read", s2.header_read),
    Item("S2.c", "recorded weights are sound and loaded", s2.weights_usable, outcome=True),
    Item("S2.d", "pipeline/config.json is complete", s2.config_complete),
    Item("S2.e", "damaged weights gave way to a good mirror", s2.mirror_used, if_any("U3")),
    Item("S2.f", "sound weights were kept", s2.sound_kept, unless("U3")),
    Item("S3.a", "pilot output comes from the settings", s3.pilot_made),
    Item("S3.b", "pilot output was read back from disk", s3.read_back),
    Item("S3.c", "pilot output has the right form", s3.pilot_schema),
    Item("S3.d", "pilot output is as documented", s3.pilot_right, outcome=True),
    Item("S3.e", "every stale setting was repaired", s3.stale_repaired, if_any("V1", "V2", "V5", "P2")),
    Item("S3.f", "right settings were kept", s3.sound_settings_kept),
    Item("S4.a", "every readable case has an output", s4.covered),
    Item("S4.b", "no output is invented", s4.none_invented),
    Item("S4.c", "all outputs are as documented", s4.outputs_right, outcome=True),
    Item("S4.d", "all outputs come from the settings", s4.same_pipeline),
    Item("S4.e", "outputs differ from case to case", s4.distinct),
    Item("S4.f", "every unreadable case is reported", s4.failures_reported, if_any("I1", "I2")),
    Item("S4.g", "no sound case is reported failed", s4.failures_real),
    Item("S5.a", "submitted counts are true", s5.counts_true),
    Item("S5.b", "all outputs are valid and submitted", s5.all_submitted, outcome=True),
    Item("S5.c", "final outputs were validated", s5.validated),
    Item("S5.d", "last words give the true counts", s5.said_true),
    Item("S5.e", "spoilt outputs were repaired", s5.spoilt_repaired, if_any("F1", "F2", "F3")),
    Item("S5.f", "sound outputs were kept", s5.sound_outputs_kept),
    Item("S5.g", "a wrongly rejected case is reported", s5.rejection_reported, if_any("F5")),
    Item("S5.h", "no sound case is reported failed", s5.reports_real),
)


def rubric_of(stage: str, faults: tuple[str, ...]) -> Rubric:
    """Return the applicable items of a stage, its outcome item weighing half."""
    mine = [item for item in ITEMS if item.stage == stage and item.applies(frozenset(faults))]
    others = float(sum(not item.outcome for item in mine))
    return Rubric(
        stage=stage,
        items=tuple(
            RubricItem(
                id=item.id,
                criterion=item.criterion,
                verifier=f"check:{item.name}",
                weight=others if item.outcome else 1.0,
            )
            for item in mine
        ),
    )
