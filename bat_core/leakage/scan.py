"""Looking at samples with all built-in rules: texts, then what they say decoded, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bat_core.leakage import paths
from bat_core.leakage.batch import Batch
from bat_core.leakage.context import Context
from bat_core.leakage.decode import DEPTH, Decoded, decode
from bat_core.leakage.decoded import suspects
from bat_core.leakage.leaves import Leaf, leaves_of, texts_of
from bat_core.leakage.normalise import folded, origin
from bat_core.model.leakage import LeakageFinding

if TYPE_CHECKING:
    from bat_core.leakage.rules.base import BatchRule, Raised

MAX_DECODED = 4_000_000
_MOST = 20


@dataclass(frozen=True)
class _Layer:
    """Texts of some samples, at one depth of decoding.

    Attributes:
        numbers: Which samples.
        texts: Their texts.
        parents: For each text what it was decoded from: number of the text in the layer above, and how.
        above: That layer.
    """

    numbers: Sequence[int]
    texts: Sequence[Sequence[str]]
    parents: Sequence[Sequence[tuple[int, Decoded]]] = ()
    above: _Layer | None = None


class Scanner:
    """Built-in rules that share one key.

    Args:
        rules: Prepared or restored.
        context: What they share.
    """

    def __init__(self, rules: Sequence[BatchRule], context: Context) -> None:
        self._rules = rules
        self._context = context

    def check(self, sample: Any) -> list[LeakageFinding]:
        """Return findings in one JSON value."""
        return self.scan([sample], [texts_of(sample)])[0]

    def scan(self, samples: Sequence[Any], texts: Sequence[Sequence[str]]) -> list[list[LeakageFinding]]:
        """Return findings for each of several samples, whose texts are given."""
        findings: list[list[LeakageFinding]] = [[] for _ in samples]
        names = _Names(samples)
        layer = _Layer(range(len(samples)), texts)
        budgets = [MAX_DECODED] * len(samples)
        seen: list[set[str] | None] = [None] * len(samples)
        for depth in range(DEPTH + 1):
            batch = Batch(layer.texts, self._context.hasher, depth, [_hidden(one) for one in layer.parents])
            for rule in self._rules:
                for raised in rule.examine(batch):
                    number = layer.numbers[raised.sample]
                    if len(findings[number]) < _MOST:
                        findings[number].append(self._finding(rule, raised, batch, layer, names))
            if depth == DEPTH:
                break
            deeper = _decoded(layer, batch, budgets, seen, findings)
            if deeper is None:
                break
            layer = deeper
        return findings

    def _finding(self, rule: BatchRule, raised: Raised, batch: Batch, layer: _Layer, names: _Names) -> LeakageFinding:
        text, begin = batch.leaf(raised.sample, raised.start)
        start, end = _inside(layer.texts[raised.sample][text], raised.start - begin, raised.end - begin)
        place = raised.sample
        here: _Layer = layer
        while here.above is not None:
            parent, how = here.parents[place][text]
            start, end = how.origin(start, end)
            place = here.above.numbers.index(here.numbers[place])
            text, here = parent, here.above
        path, start, end = names.named(layer.numbers[raised.sample], text, start, end)
        return LeakageFinding(
            rule=rule.name,
            severity=raised.severity,
            kind=self._context.labels[raised.kind],
            path=path,
            start=start,
            end=end,
            reason=f"{raised.reason}, after decoding" if batch.depth else raised.reason,
        )


def _hidden(parents: Sequence[tuple[int, Decoded]]) -> bool:
    """Whether texts come from encoded runs, not from readable text with some escapes in it."""
    return all(how.pieces[0] == how.pieces[-1] and not how.pieces[0].exact for _, how in parents)


def _inside(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of characters of a text for a span of bytes that may reach beyond its end."""
    size = len(text) if text.isascii() else len(folded(text).encode())
    return origin(text, start, max(min(end, size), start + 1))


class _Names:
    """JSON paths of the texts of samples; a sample is walked for them only if something is found in it."""

    def __init__(self, samples: Sequence[Any]) -> None:
        self._samples = samples
        self._leaves: dict[int, list[Leaf]] = {}

    def named(self, sample: int, number: int, start: int, end: int) -> tuple[str, int, int]:
        """Return the JSON path of a text of a sample and a span in the field as given."""
        if sample not in self._leaves:
            self._leaves[sample] = list(leaves_of(self._samples[sample]))
        leaf = self._leaves[sample][number]
        if leaf.within is not None:
            return paths.render(leaf.node), 0, leaf.within
        return paths.render(leaf.node), start, end


def _decoded(
    layer: _Layer, batch: Batch, budgets: list[int], seen: list[set[str] | None], findings: list[list[LeakageFinding]]
) -> _Layer | None:
    """Return what the texts of a layer say decoded, None if nothing is encoded."""
    chosen: dict[int, set[int]] = {}
    for at in suspects(batch):
        position = int(batch.sample_starts.searchsorted(at, "right")) - 1
        if 0 <= position < len(layer.texts):
            chosen.setdefault(position, set()).add(batch.leaf(position, at)[0])
    numbers, texts, parents = [], [], []
    for position in sorted(chosen):
        number = layer.numbers[position]
        known = seen[number] = seen[number] or set(layer.texts[position])
        mine: list[tuple[int, Decoded]] = []
        for which in sorted(chosen[position]):
            for found in decode(layer.texts[position][which]):
                budgets[number] -= len(found.text)
                if found.text not in known and found.text:
                    known.add(found.text)
                    mine.append((which, found))
        if budgets[number] < 0:
            reason = "too much encoded text to check; leave the sample out of training"
            findings[number].append(LeakageFinding(rule="view", reason=reason))
        elif mine:
            numbers.append(number)
            texts.append([found.text for _, found in mine])
            parents.append(mine)
    return _Layer(numbers, texts, parents, layer) if numbers else None
