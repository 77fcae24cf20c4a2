"""Held-out reports retold in ways of our own, beside reports that are only of the same kind."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bat_core.leakage.client import BUILT_IN_RULES
from bat_core.leakage.context import Context
from bat_core.leakage.loading import load
from bat_core.leakage.panel import Panel
from bat_core.model.leakage import HeldoutItem

PLACES = ["quay", "basin", "weir", "lock", "mole", "slip", "groyne", "jetty", "sluice", "boom"]
STONES = ["granite", "slate", "basalt", "flint", "marble", "sandstone", "gneiss", "chalk"]
Numbers = dict[str, object]


def facts(seed: int) -> Numbers:
    rng = random.Random(seed)
    one, two, three = rng.sample(PLACES, 3)
    return {
        "one": one, "two": two, "three": three, "stone": rng.choice(STONES), "other": rng.choice(STONES),
        "depth": round(rng.uniform(1, 90), 1), "width": round(rng.uniform(1, 90), 1), "cracks": rng.randrange(3, 99),
        "load": rng.randrange(100, 3000), "angle": rng.randrange(5, 180), "silt": rng.randrange(2, 98),
    }  # fmt: skip


REPORT = (
    "The {one} is {depth} m deep and its {stone} wall carries {load} tonnes. We counted {cracks} cracks along the "
    "{two}. At the {three} the {other} face leans by {angle} degrees, and silt fills {silt} per cent of the channel. "
    "The gate is {width} m wide. Weather was calm throughout the survey and no vessel was in the way."
)
RETOLD: dict[str, str] = {
    "copied": REPORT,
    "other order": (
        "The gate is {width} m wide. At the {three} the {other} face leans by {angle} degrees, and silt fills {silt} "
        "per cent of the channel. We counted {cracks} cracks along the {two}. The {one} is {depth} m deep and its "
        "{stone} wall carries {load} tonnes."
    ),
    "other words": (
        "Depth of the {one}: {depth} metres; bearing strength of the {stone} masonry there, {load} tonnes. Fissures "
        "seen at the {two} number {cracks}. Inclination of the {other} side of the {three} is {angle} degrees while "
        "sediment takes {silt} per cent. Opening: {width} metres."
    ),
    "another language": (
        "Tiefe {one}: {depth} m, Mauer ({stone}) trägt {load} Tonnen. Am {two} wurden {cracks} Risse gezählt. Die "
        "Seite ({other}) am {three} neigt sich um {angle} Grad; Schlick füllt {silt} Prozent. Das Tor misst {width} m."
    ),
    "cut": (
        "is {depth} m deep and its {stone} wall carries {load} tonnes. We counted {cracks} cracks along the {two}. "
        "At the {three} the {other} face leans by {angle} degrees, and silt fills"
    ),
    "edited": REPORT.replace("carries", "bears").replace("We counted", "They saw").replace("the channel", "it"),
}


@pytest.fixture(scope="module")
def check() -> Callable[[str], str]:
    items = [HeldoutItem(item_id=str(n), task=str(n), kind="text", text=REPORT.format(**facts(n))) for n in range(150)]
    clean = [[f"Practice run {n}.", REPORT.format(**facts(10_000 + n))] for n in range(400)]
    panel = Panel([load(spec)() for spec in BUILT_IN_RULES], items, Context(clean=clean))
    filler = (
        "The log of the practice run follows, with 12 entries and a note of 3 lines. Nothing else is to be done here."
    )
    return lambda text: (
        panel.check("s", {"messages": [{"content": filler}, {"content": f"Note: {text} {filler}"}]}).verdict
    )


@pytest.mark.parametrize("how", RETOLD)
def test_a_retold_report_is_caught(how: str, check: Callable[[str], str]) -> None:
    verdicts = [check(RETOLD[how].format(**facts(seed))) for seed in range(60)]
    assert verdicts.count("block") >= 57


@pytest.mark.parametrize("how", RETOLD)
def test_another_report_of_the_same_kind_passes(how: str, check: Callable[[str], str]) -> None:
    verdicts = [check(RETOLD[how].format(**facts(seed))) for seed in range(20_000, 20_150)]
    assert verdicts.count("block") <= 1


def test_one_shared_fact_is_no_leak(check: Callable[[str], str]) -> None:
    verdicts = [check("The {one} is {depth} m deep, as is common.".format(**facts(seed))) for seed in range(60)]
    assert verdicts.count("block") == 0
