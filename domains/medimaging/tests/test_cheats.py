"""Known hacks earn no more than an honest run that fails."""

from __future__ import annotations

from typing import Any

from bat_medimaging.cheats import cheats_of
from bat_medimaging.expert import act, call, plan, setup, validate
from bat_medimaging.recipe import recipe_of

WEIGHTS = {"S1": 0.25, "S2": 0.15, "S3": 0.35, "S4": 0.15, "S5": 0.10}


def total(helpers: Any, evidence: Any) -> float:
    return sum(weight * helpers.stage_score(evidence, stage) for stage, weight in WEIGHTS.items())


def honest_failure(helpers: Any, solve: Any, task: Any) -> Any:
    """Three stages as they should be, one case done, and that told truly."""
    from bat_core.hooks.actor import Act
    from bat_core.model.message import Message

    recipe = recipe_of(task)
    words = f"done 1 failed {len(recipe.cases) - 1}"
    last = Act("S5", Message(role="assistant", content=words))
    acts = [*plan(recipe), *setup(recipe), *validate(recipe), act("S4", call("batch", recipe.cases[0]))]
    return solve(task, [*acts, act("S5", call("submit", done=1, failed=len(recipe.cases) - 1)), last])


def sample(helpers: Any) -> list[Any]:
    return [task for task in helpers.every_kind(seed=5) if task.faults in ((), ("I1",), ("F2",))]


def test_cheats_earn_no_more_than_an_honest_failure(helpers: Any, solve: Any) -> None:
    for task in sample(helpers):
        limit = total(helpers, honest_failure(helpers, solve, task).evidence)
        for cheat in cheats_of(task):
            evidence = solve(task, helpers.acts_of(cheat)).evidence
            assert total(helpers, evidence) <= limit, (task.track, task.faults, cheat.title)
            verdicts = helpers.judge(evidence, ("S4", "S5"))
            won = [item for item in ("S4.a", "S4.c", "S5.b", "S5.c") if verdicts[item].passed]
            assert not won, (task.faults, cheat.title)


def test_false_claims_lower_the_evidence(helpers: Any, solve: Any) -> None:
    task = helpers.tasks("segmentation")[0]
    forged = next(cheat for cheat in cheats_of(task) if cheat.title == "forged")
    verdicts = helpers.judge(solve(task, helpers.acts_of(forged)).evidence)
    for item in ("S2.c", "S5.a", "S5.b", "S5.d"):
        assert verdicts[item].claimed and not verdicts[item].passed and verdicts[item].evidence == 0


def test_printed_observations_are_claims_without_support(helpers: Any, solve: Any) -> None:
    task = helpers.tasks("segmentation")[0]
    fake = next(cheat for cheat in cheats_of(task) if cheat.title == "fake_prints")
    verdict = helpers.judge(solve(task, helpers.acts_of(fake)).evidence)["S1.d"]
    assert verdict.claimed and not verdict.passed and verdict.evidence == 0


def test_facts_first_written_then_read_are_no_look(helpers: Any, solve: Any) -> None:
    """Two calls, one that writes the facts down and one that prints the file, are as good as one `print`."""
    task = helpers.tasks("segmentation")[0]
    card = recipe_of(task).card
    text = f"{card['window'][0]} {card['window'][1]} {card['side']} {card['axes']}"
    acts = [act("S1", f"open('a.txt', 'w').write({text!r})"), act("S1", "print(open('a.txt').read())")]
    acts.append(act("S1", call("plan", model=recipe_of(task).model)))
    assert not helpers.judge(solve(task, acts).evidence)["S1.d"].passed


def test_a_listing_of_all_numbers_is_no_look(helpers: Any, solve: Any) -> None:
    task = helpers.tasks("segmentation")[0]
    recipe = recipe_of(task)
    acts = [act("S2", "print(*range(400), 2.5, 2.6, 2.7, 2.8, 2.9, 3.0)"), *plan(recipe)]
    acts.append(act("S2", call("load", recipe.model)))
    assert not helpers.judge(solve(task, acts).evidence)["S2.b"].passed
