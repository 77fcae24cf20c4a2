"""The panel: all rules, prepared, and what they say together about samples. It fails closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bat_core.errors import LeakageError
from bat_core.hooks.leakage_rule import LeakageRule
from bat_core.leakage.batch import WINDOW, Batch
from bat_core.leakage.context import Context
from bat_core.leakage.leaves import texts_of
from bat_core.leakage.needles import Needle, NeedleIndex
from bat_core.leakage.normalise import squash
from bat_core.leakage.rules.base import BatchRule
from bat_core.leakage.scan import Scanner
from bat_core.leakage.verdict import worst
from bat_core.model.base import digest_of
from bat_core.model.leakage import Checked, HeldoutItem, LeakageFinding

TOGETHER_CHARS = 400_000
"""Characters that are looked at together: as many as fit a core's cache."""


class Panel:
    """Rules and what they keep of the held-out items.

    Attributes:
        covered: How many items each rule covers.
        refused: How many items no rule is known to cover: too weak to check, or of a kind that no rule takes.
        index: Identity of items and rules together. It tells a change, it hides nothing: whoever can guess all
            items can confirm the guess.
    """

    def __init__(
        self, rules: Sequence[LeakageRule], heldout: Sequence[HeldoutItem], context: Context | None = None
    ) -> None:
        if not rules or not heldout:
            raise LeakageError("there are no rules or no held-out items", remedy="check the source and the rules")
        context = context or Context()
        squashed = (squash(item.text) for item in heldout)
        private = [Needle(form, 0, bounded=False) for form in squashed if len(form) >= WINDOW]
        self.covered = {rule.name: _prepared(rule, heldout, context) for rule in rules}
        if not any(self.covered.values()):
            raise LeakageError("no held-out item is covered", remedy="give the source longer items, or add rules")
        known = {item_id for rule in rules for item_id in getattr(rule, "covered_ids", None) or ()}
        self.weak = [item for item in heldout if item.item_id not in known]
        self.refused = len(self.weak)
        names = [_name(rule) for rule in rules]
        self.index = digest_of({"rules": names, "items": sorted(digest_of(item) for item in heldout)})
        self._set(rules, context, NeedleIndex.of(private, context.hasher))

    def _set(self, rules: Sequence[LeakageRule], context: Context, private: NeedleIndex) -> None:
        self._rules = tuple(rules)
        self._context = context
        self._private = private
        self._built_in = [rule for rule in rules if isinstance(rule, BatchRule)]
        self._foreign = [rule for rule in rules if not isinstance(rule, BatchRule)]

    @property
    def labels(self) -> list[str]:
        """Names of the kinds of held-out items, in the order of their numbers."""
        return self._context.labels

    def dump(self) -> dict[str, NDArray[np.generic]]:
        """Return all fingerprints by `rule/name`.

        Raises:
            LeakageError: A rule keeps more than fingerprints.
        """
        for rule in self._foreign:
            raise LeakageError(
                f"rule {rule.name} ({_name(rule)}) can't be kept in an index file", remedy="derive it from BatchRule"
            )
        parts = {"private": self._private.arrays, **{rule.name: rule.dump() for rule in self._built_in}}
        return {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    @classmethod
    def restored(
        cls,
        rules: Sequence[BatchRule],
        arrays: Mapping[str, NDArray[np.generic]],
        context: Context,
        said: Mapping[str, Any],
    ) -> Panel:
        """Return a panel from the fingerprints that `dump` returned; `said` holds its other attributes."""
        panel = cls.__new__(cls)
        for rule in rules:
            rule.restore(_part(arrays, rule.name), context)
        panel._set(rules, context, NeedleIndex(_part(arrays, "private")))
        panel.covered, panel.refused, panel.index = dict(said["covered"]), int(said["refused"]), str(said["index"])
        panel.weak = []
        return panel

    def check(self, sample_id: str, value: Any) -> Checked:
        """Return the verdict on a sample: the worst of all findings, or block if anything went wrong."""
        return self.check_all([(sample_id, value)])[0]

    def check_all(self, samples: Sequence[tuple[str, Any]]) -> list[Checked]:
        """Return the verdicts on samples, in order."""
        checked: list[Checked] = []
        batch: list[tuple[str, Any, list[str]]] = []
        waiting = 0
        for sample_id, value in samples:
            texts = _read(value)
            if isinstance(texts, LeakageFinding):
                checked += self._together(batch)
                batch, waiting = [], 0
                checked.append(Checked(id=sample_id, verdict="block", findings=(texts,)))
                continue
            batch.append((sample_id, value, texts))
            waiting += sum(map(len, texts))
            if waiting >= TOGETHER_CHARS:
                checked += self._together(batch)
                batch, waiting = [], 0
        return checked + self._together(batch)

    def _together(self, batch: Sequence[tuple[str, Any, list[str]]]) -> list[Checked]:
        """Return verdicts on samples, one by one if something fails, so that only the culprit is rejected."""
        if not batch:
            return []
        try:
            scanner = Scanner(self._built_in, self._context)
            found = scanner.scan([value for _, value, _ in batch], [texts for _, _, texts in batch])
        except Exception as error:  # noqa: BLE001  # boundary: a rule that fails rejects the sample
            if len(batch) > 1:
                return [one for sample in batch for one in self._together([sample])]
            found = [[LeakageFinding(rule="rules", reason=f"a rule failed: {_why(error)}")]]
        return [
            self._verdict(sample_id, value, findings)
            for (sample_id, value, _), findings in zip(batch, found, strict=True)
        ]

    def _verdict(self, sample_id: str, value: Any, findings: list[LeakageFinding]) -> Checked:
        if not findings and not self._foreign:
            return Checked.model_construct(id=sample_id, verdict="pass", findings=())
        for rule in self._foreign:
            try:
                findings += [self._clean(rule, finding) for finding in rule.check(value)]
            except Exception as error:  # noqa: BLE001  # boundary: a rule that fails rejects the sample
                failure = LeakageFinding(rule=rule.name, reason=f"rule {rule.name} failed: {_why(error)}")
                findings.append(self._clean(rule, failure))
        return Checked(id=sample_id, verdict=worst(findings), findings=tuple(findings))

    def _clean(self, rule: LeakageRule, finding: LeakageFinding) -> LeakageFinding:
        """Return a finding without held-out text, whoever wrote the rule."""
        if not isinstance(finding, LeakageFinding):
            raise TypeError("a finding is not a LeakageFinding")
        said = Batch([[finding.reason, finding.path, finding.kind]], self._context.hasher)
        if not any(True for _ in self._private.search(said)):
            return finding.model_copy(update={"rule": rule.name})
        return LeakageFinding(rule=rule.name, severity=finding.severity, reason="withheld: it held held-out text")


def _prepared(rule: LeakageRule, heldout: Sequence[HeldoutItem], context: Context) -> int:
    return rule.take(heldout, context) if isinstance(rule, BatchRule) else rule.prepare(heldout)


def _part(arrays: Mapping[str, NDArray[np.generic]], name: str) -> dict[str, NDArray[np.generic]]:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}


def _name(rule: LeakageRule) -> str:
    return f"{type(rule).__module__}:{type(rule).__qualname__}"


def _read(value: Any) -> list[str] | LeakageFinding:
    """Return the texts of a sample, or why it can't be cleared."""
    try:
        return texts_of(value)
    except Exception as error:  # noqa: BLE001  # boundary: what can't be read can't be cleared
        return LeakageFinding(rule="view", reason=_why(error))


def _why(error: Exception) -> str:
    """Return what may be said of an error: our own messages are safe, others may quote the sample."""
    return str(error) if isinstance(error, LeakageError) else type(error).__name__
