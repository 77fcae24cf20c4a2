"""Paths of held-out files: whole, by their last parts, or by one telling part."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from bat_core.leakage.batch import WINDOW
from bat_core.leakage.needles import Needle, variants
from bat_core.leakage.normalise import squash
from bat_core.leakage.rules.needles import NeedleRule
from bat_core.model.leakage import HeldoutItem

_LEAST_PART = 10
_LEAST_WHOLE = 24
_SEPARATORS = re.compile(r"[/\\]+")
_SUFFIX = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,5}){1,2}$")
_GENERIC = re.compile(
    r"case|sample|subject|patient|image|img|mask|label|seg(mentation)?|pred(iction)?|result|output|input|data(set)?"
    r"|train(ing)?|test(ing)?|val(idation)?|fold|epoch|step|checkpoint|ckpt|model|batch|part|file|scan|slice|volume"
    r"|session|series|study|run|log|task|version|final|best|latest|truth|ground|gt|expert|reader|reference"
)


class PathRule(NeedleRule):
    """Fires on a held-out path in any spelling, under any root."""

    name = "path"
    reason = "a held-out path or a telling part of one"
    kinds = frozenset({"path"})

    def index(self, items: Sequence[HeldoutItem]) -> set[str]:
        """Take paths with a telling part or of 24 letters and digits; parts of several tasks' paths don't count."""
        tasks: dict[str, set[str]] = defaultdict(set)
        for item in items:
            for form in _signatures(item.text):
                tasks[form].add(item.task)
        public = self.context.public(form for form in tasks)
        covered, needles = set(), []
        for item in items:
            own = [form for form in _signatures(item.text) if len(tasks[form]) == 1 and form not in public]
            if own:
                covered.add(item.item_id)
                kind = self.context.kind(item)
                needles += [Needle(form, kind) for signature in own for form in variants(signature)]
        self.keep(needles)
        return covered


def _signatures(path: str) -> set[str]:
    """Return the squashed forms by which a path is known."""
    parts = [part for part in _SEPARATORS.split(path.strip()) if squash(part)]
    stems = [squash(_SUFFIX.sub("", part)) for part in parts]
    telling = {stem for stem in stems if _telling(stem)}
    long = {squash("".join(parts)), squash("".join(parts[-3:]))} if len(parts) > 1 else set()
    long = {form for form in long if len(form) >= _LEAST_WHOLE or (telling and len(form) >= _LEAST_PART)}
    return {form for form in long | telling if len(form) >= WINDOW}


def _telling(stem: str) -> bool:
    """Whether one part alone points to a file: long, with digits, and more than `segmentation_001`."""
    rest = _GENERIC.sub("", re.sub(r"\d+", "", stem))
    return len(stem) >= _LEAST_PART and not stem.isalpha() and len(rest) >= 4
