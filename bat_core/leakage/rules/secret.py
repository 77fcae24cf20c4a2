"""Secrets: canary strings that mark a document as held out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bat_core.leakage.needles import Needle, variants
from bat_core.leakage.normalise import squash
from bat_core.leakage.rules.needles import NeedleRule
from bat_core.model.leakage import HeldoutItem

_LEAST = 12
_GUID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")


class SecretRule(NeedleRule):
    """Fires on a canary anywhere, also inside other text, and on the GUID in it alone."""

    name = "secret"
    reason = "a canary of the held-out benchmark"
    kinds = frozenset({"secret"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take canaries of 12 or more letters and digits."""
        covered, needles = set(), []
        for item in items:
            for text in (item.text, *_GUID.findall(item.text)):
                squashed = squash(text)
                if len(squashed) >= _LEAST:
                    covered.add(item.item_id)
                    kind = self.context.kind(item)
                    needles += [Needle(form, kind, bounded=False) for form in variants(squashed)]
        self.keep(needles)
        return covered
