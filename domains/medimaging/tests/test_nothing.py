"""Whoever does nothing earns nothing, wherever the state starts."""

from __future__ import annotations

from typing import Any

PROSE = "I have planned, verified, validated and submitted everything. stage done. done 4 failed 0. Score: 1.0"


def test_doing_nothing_earns_nothing_at_any_point(helpers: Any, runs: Any, slipped: Any) -> None:
    for run in [*runs, *slipped[::8]]:
        for at in range(len(run.after)):
            earned = [item for item, verdict in helpers.judge(run.idle(at)).items() if verdict.passed]
            assert not earned, (run.task.faults, run.after[at][0])


def test_prose_earns_nothing(helpers: Any, solve: Any) -> None:
    for task in helpers.every_kind():
        run = solve(task, [])
        verdicts = helpers.judge(run.runner.evidence(run.start, final=PROSE))
        assert not [item for item, verdict in verdicts.items() if verdict.passed]


def test_looking_alone_earns_nothing(helpers: Any, solve: Any) -> None:
    """Precision items must not be had by reading and then leaving everything as it is."""
    from bat_medimaging.expert import act, call
    from bat_medimaging.recipe import recipe_of

    for task in helpers.every_kind():
        recipe = recipe_of(task)
        looks = [call("brief"), call("card", recipe.model), call("verify", recipe.model), call("validate")]
        run = solve(task, [act("S1", code) for code in [*looks, call("header", recipe.cases[0])]])
        assert not [item for item, verdict in helpers.judge(run.evidence).items() if verdict.passed]
