"""S1: the plan and what it says."""

from __future__ import annotations

import re
from dataclasses import replace

from bat_core.verify.toolbox.facts import Fact
from bat_core.verify.toolbox.readback import read_back
from bat_medimaging.casefile import Casefile, same_setting
from bat_medimaging.checks.base import Finding
from bat_medimaging.toolbelt.phx.place import short, words
from bat_medimaging.toolbelt.phx.planning import FACTS

PLAN = "plan/plan.md"
STAGES = ("plan", "setup", "validate", "infer", "submit")


def plan_written(case: Casefile) -> Finding:
    """The plan has its length and a heading for each stage."""
    text = case.plan_text()
    headings = re.findall(r"^#+ *(.*)$", text.lower(), re.MULTILINE)
    missing = [stage for stage in STAGES if not any(stage in heading for heading in headings)]
    return Finding(case.new(PLAN) and len(text) >= 400 and not missing, f"{len(text)} characters, lacks {missing}")


def model_covers(case: Casefile) -> Finding:
    """The plan names the model whose labels cover all targets."""
    named = case.planned("model")
    return Finding(case.new(PLAN) and named == case.recipe.model, f"names {named[:32]!r}")


def facts_right(case: Casefile) -> Finding:
    """The plan states the card's facts, each with the card's value."""
    keys = FACTS[case.recipe.track]
    wrong = [key for key in keys if not same_setting(case.planned(key), case.recipe.card[key])]
    return Finding(case.new(PLAN) and not wrong, f"wrong or missing: {wrong}")


def card_read(case: Casefile) -> Finding:
    """A call printed what only the card says, and a plan came of it."""
    card = case.recipe.card
    facts: list[Fact] = (
        [*(int(end) for end in card["window"]), card["side"], card["axes"], float(card["spacing"])]
        if case.segmentation
        else [*card["labels"], card["channels"], int(card["scale"])]
    )
    # A pilot run prints its settings; the side on which the lesion lies stands in the card alone.
    must: list[Fact] = [card["side"]] if case.segmentation else []
    found = read_back(case.calls, facts, 3 if case.segmentation else 5, must)
    return replace(found, passed=bool(found.passed and case.new(PLAN)))


def pilot_named(case: Casefile) -> Finding:
    """The plan names a pilot case that exists."""
    named = case.planned("pilot")
    return Finding(case.new(PLAN) and named in case.recipe.cases, f"names {named[:32]!r}")


def conflicts_named(case: Casefile) -> Finding:
    """Every fact that the README has wrong is named."""
    missed = sorted(case.recipe.conflicts - _named(case))
    return Finding(case.new(PLAN) and not missed, f"missed {missed}")


def conflicts_real(case: Casefile) -> Finding:
    """Every named conflict is one; `none` is named where there is none."""
    named = _named(case)
    extra = sorted(named - case.recipe.conflicts - {"none"})
    none_right = "none" not in named or not named - {"none"}
    return Finding(bool(case.new(PLAN) and named and none_right and not extra), f"unreal {extra}"[:80])


def _named(case: Casefile) -> set[str]:
    return {short(word) for word in words(case.planned("conflict"))[:16]}
