"""The panel: all rules, prepared, and what they say together about a sample. It fails closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from bat_core.errors import LeakageError
from bat_core.hooks.leakage_rule import LeakageRule
from bat_core.leakage.needles import Needle, NeedleIndex
from bat_core.leakage.normalise import GRAM, Views, squash
from bat_core.leakage.rules.base import FieldRule
from bat_core.leakage.view import View, view_of
from bat_core.model.base import digest_of
from bat_core.model.leakage import Checked, HeldoutItem, LeakageFinding


class Panel:
    """Rules and the held-out items that they were prepared with.

    Attributes:
        covered: How many items each rule covers.
        refused: How many items no rule is known to cover: too weak to check, or of a kind that no rule takes.
        index: Identity of items and rules together. It tells a change, it hides nothing: whoever can guess all
            items can confirm the guess.
    """

    def __init__(self, rules: Sequence[LeakageRule], heldout: Sequence[HeldoutItem]) -> None:
        if not rules or not heldout:
            raise LeakageError("there are no rules or no held-out items", remedy="check the source and the rules")
        self._rules = tuple(rules)
        squashed = (squash(item.text) for item in heldout)
        self._private = NeedleIndex(Needle(form, "", bounded=False) for form in squashed if len(form) >= GRAM)
        self.covered = {rule.name: rule.prepare(heldout) for rule in rules}
        if not any(self.covered.values()):
            raise LeakageError("no held-out item is covered", remedy="give the source longer items, or add rules")
        known = {item_id for rule in rules for item_id in getattr(rule, "covered_ids", None) or ()}
        self.refused = sum(item.item_id not in known for item in heldout)
        names = [f"{type(rule).__module__}:{type(rule).__qualname__}" for rule in rules]
        self.index = digest_of({"rules": names, "items": sorted(digest_of(item) for item in heldout)})

    def check(self, sample_id: str, value: Any) -> Checked:
        """Return the verdict on a sample: the worst of all findings, or block if anything went wrong."""
        try:
            view = view_of(value)
        except Exception as error:  # noqa: BLE001  # boundary: what can't be read can't be cleared
            return _blocked(sample_id, "view", _why(error))
        findings: list[LeakageFinding] = []
        for rule in self._rules:
            try:
                findings += [self._clean(rule, finding) for finding in _ask(rule, view, value)]
            except Exception as error:  # noqa: BLE001  # boundary: a rule that fails rejects the sample
                failure = LeakageFinding(rule=rule.name, reason=f"rule {rule.name} failed: {_why(error)}")
                findings.append(self._clean(rule, failure))
        return Checked(id=sample_id, verdict=worst(findings), findings=tuple(findings))

    def _clean(self, rule: LeakageRule, finding: LeakageFinding) -> LeakageFinding:
        """Return a finding without held-out text, whoever wrote the rule."""
        if not isinstance(finding, LeakageFinding):
            raise TypeError("a finding is not a LeakageFinding")
        said = Views(f"{finding.reason}\n{finding.path}\n{finding.kind}")
        if not any(True for _ in self._private.search(said)):
            return finding.model_copy(update={"rule": rule.name})
        return LeakageFinding(rule=rule.name, severity=finding.severity, reason="withheld: it held held-out text")


def worst(findings: Sequence[LeakageFinding]) -> Literal["pass", "review", "block"]:
    """Return the verdict that findings amount to."""
    severities = {finding.severity for finding in findings}
    return "block" if "block" in severities else "review" if severities else "pass"


def _ask(rule: LeakageRule, view: View, value: Any) -> Sequence[LeakageFinding]:
    return rule.look(view) if isinstance(rule, FieldRule) else rule.check(value)


def _why(error: Exception) -> str:
    """Return what may be said of an error: our own messages are safe, others may quote the sample."""
    return str(error) if isinstance(error, LeakageError) else type(error).__name__


def _blocked(sample_id: str, rule: str, reason: str) -> Checked:
    return Checked(id=sample_id, verdict="block", findings=(LeakageFinding(rule=rule, reason=reason),))
