"""The expert earns everything, whoever does nothing earns nothing."""

from __future__ import annotations


def test_expert_passes_every_item(helpers, solve) -> None:
    for task in helpers.every_kind():
        run = solve(task)
        failed = {k: v.reason for k, v in helpers.judge(run.evidence).items() if not v.passed or v.evidence < 1}
        assert not failed, (task.track, task.faults, failed, run.lines)
