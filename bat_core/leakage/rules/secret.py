"""Secrets: canary strings that mark a document as held out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bat_core.leakage.needles import Needle, NeedleIndex, variants
from bat_core.leakage.normalise import squash
from bat_core.leakage.rules.base import FieldRule
from bat_core.leakage.view import Field
from bat_core.model.leakage import HeldoutItem, LeakageFinding

_LEAST = 12
_GUID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")


class SecretRule(FieldRule):
    """Fires on a canary anywhere, also inside other text, and on the GUID in it alone."""

    name = "secret"
    kinds = frozenset({"secret"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take canaries of 12 or more letters and digits."""
        covered, needles = set(), []
        for item in items:
            for text in (item.text, *_GUID.findall(item.text)):
                squashed = squash(text)
                if len(squashed) >= _LEAST:
                    covered.add(item.item_id)
                    needles += [Needle(form, item.kind, bounded=False) for form in variants(squashed)]
        self._needles = NeedleIndex(needles)
        return covered

    def search(self, field: Field) -> Iterator[LeakageFinding]:
        """Yield a finding for each canary in a field."""
        for hit in self._needles.search(field.views):
            yield self.finding(field, hit.start, hit.end, hit.needle.kind, "a canary of the held-out benchmark")
