"""Identifiers: task ids, UUIDs, accessions, commits, digests of masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bat_core.leakage.needles import Needle, NeedleIndex, is_hex, variants
from bat_core.leakage.normalise import squash
from bat_core.leakage.rules.base import FieldRule
from bat_core.leakage.view import Field
from bat_core.model.leakage import HeldoutItem, LeakageFinding

_LEAST = 8
_LEAST_LETTERS = 16


class IdentifierRule(FieldRule):
    """Fires on an identifier in any spelling, but not on one that merely begins like it."""

    name = "identifier"
    kinds = frozenset({"identifier"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take identifiers of 8 or more letters and digits (16 if there is no digit): `case-12` is too generic."""
        covered, needles = set(), []
        for item in items:
            squashed = squash(item.text)
            if len(squashed) < _LEAST or (len(squashed) < _LEAST_LETTERS and squashed.isalpha()):
                continue
            covered.add(item.item_id)
            needles += [Needle(form, item.kind) for form in variants(squashed) - {squashed}]
            needles.append(Needle(squashed, item.kind, prefix=is_hex(squashed)))
        self._needles = NeedleIndex(needles)
        return covered

    def search(self, field: Field) -> Iterator[LeakageFinding]:
        """Yield a finding for each identifier in a field."""
        for hit in self._needles.search(field.views):
            yield self.finding(field, hit.start, hit.end, hit.needle.kind, "a held-out identifier")
