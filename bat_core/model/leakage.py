"""Held-out items, samples and findings of the leakage preflight."""

from __future__ import annotations

from typing import Literal

from bat_core.model.base import Value


class HeldoutItem(Value):
    """One thing that must never be trained on. Lives on the evaluator's side only.

    Attributes:
        item_id: Its name.
        task: The task it belongs to.
        kind: How it is looked for.
        text: Itself.
        label: What its owner calls the kind, if that is more than `kind` says.
    """

    item_id: str
    task: str
    kind: Literal["identifier", "path", "text", "answer", "trace", "secret"]
    text: str
    label: str = ""


class LeakageFinding(Value):
    """Where a sample touches held-out content. Never holds the matched text itself.

    Attributes:
        rule: Name of the rule.
        severity: `block` rejects, `review` quarantines.
        kind: Kind of the held-out item.
        path: JSON path of the field.
        start, end: Character offsets in that field.
        reason: One line without held-out text.
    """

    rule: str
    severity: Literal["block", "review"] = "block"
    kind: str = ""
    path: str = "$"
    start: int = 0
    end: int = 0
    reason: str = ""


class Checked(Value):
    """The preflight's answer for one sample."""

    id: str
    verdict: Literal["pass", "review", "block"]
    findings: tuple[LeakageFinding, ...] = ()
