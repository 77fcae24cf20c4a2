"""Deleting or altering one artifact or receipt of a perfect run flips the items that depend on it, and no others."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

CONFIG = {"S2.a", "S2.d", "S2.f", "S3.a", "S3.f", "S4.d"}
PLAN = {"S1.a", "S1.b", "S1.c", "S1.e", "S1.g", "S2.d"}
SENT = {"S5.a", "S5.b", "S5.c", "S5.d", "S5.f", "S5.h"}
PILOT = {"S3.a", "S3.b", "S3.c", "S3.d"}
MASK = {"S4.a", "S4.c", "S5.a", "S5.b", "S5.c", "S5.d"}
ROWS = {"S4.a", "S4.b", "S4.c", "S4.d", "S4.e", "S4.g"} | SENT
DELETED = {
    "plan/plan.md": PLAN | {"S1.d"},
    "setup/environment.json": {"S2.c"},
    "pipeline/config.json": CONFIG,
    "validation/": PILOT | {"S3.f"},
    "outputs/submission.json": SENT,
    "outputs/predictions.csv": ROWS,
    "outputs/": MASK,
}
ALTERED = {
    "plan/plan.md": PLAN,
    "setup/environment.json": {"S2.c"},
    "pipeline/config.json": CONFIG,
    "validation/": PILOT,
    "outputs/submission.json": {"S5.a", "S5.b"},
    "outputs/predictions.csv": ROWS,
    "outputs/": MASK | {"S4.d", "S5.f"},
}
CALLS = {"verify": {"S2.a"}, "header": {"S2.b"}, "look": {"S3.b"}, "validate": {"S5.c"}, "card": {"S1.d"}}
"""In classification a pilot run prints all that the card says, so that its receipt alone flips nothing there."""


@pytest.fixture(scope="module", params=["segmentation", "classification"])
def run(helpers: Any, solve: Any, request: Any) -> Any:
    return solve(helpers.tasks(request.param, "success", None, seed=7)[0])


def lost(helpers: Any, evidence: Any) -> set[str]:
    return {item for item, verdict in helpers.judge(evidence).items() if not verdict.passed}


def due(table: dict[str, set[str]], path: str) -> set[str]:
    return next(items for prefix, items in table.items() if path.startswith(prefix))


def test_every_artifact_counts_where_it_is_needed(helpers: Any, run: Any) -> None:
    assert lost(helpers, run.evidence) == set()
    files = run.evidence.files
    for path in (path for path in files if path not in run.start):
        less = {name: data for name, data in files.items() if name != path}
        assert lost(helpers, dataclasses.replace(run.evidence, files=less)) == due(DELETED, path), path
        other = {**files, path: b"x"}
        assert lost(helpers, dataclasses.replace(run.evidence, files=other)) == due(ALTERED, path), path


def test_every_receipt_counts_where_it_is_needed(helpers: Any, run: Any) -> None:
    receipts = run.evidence.receipts
    for place, receipt in enumerate(receipts):
        name = receipt.code.removeprefix("phx.").partition("(")[0]
        expected = CALLS.get(name, set()) if name != "card" or run.task.track == "segmentation" else set()
        left = (*receipts[:place], *receipts[place + 1 :])
        assert lost(helpers, dataclasses.replace(run.evidence, receipts=left)) == expected, receipt.code
        for change in ({"stdout": ""}, {"rc": 1}, {"status": "timeout"}):
            altered = (*receipts[:place], receipt.model_copy(update=change), *receipts[place + 1 :])
            assert lost(helpers, dataclasses.replace(run.evidence, receipts=altered)) == expected, (
                receipt.code,
                change,
            )
