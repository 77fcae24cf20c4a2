from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bat_core.errors import LeakageError
from bat_core.hooks.leakage_rule import LeakageRule
from bat_core.leakage.client import BUILT_IN_RULES
from bat_core.leakage.loading import load
from bat_core.leakage.normalise import squash
from bat_core.leakage.panel import Panel
from bat_core.leakage.rules.identifier import IdentifierRule
from bat_core.model.leakage import Checked, HeldoutItem, LeakageFinding

ITEM = HeldoutItem(item_id="a", task="t", kind="identifier", text="QRX-7731-OBOE-58")


class Odd(LeakageRule):
    name = "odd"

    def __init__(self, act: Callable[[Any], Any]) -> None:
        self._act = act

    def prepare(self, heldout: Sequence[HeldoutItem]) -> int:
        return len(heldout)

    def check(self, sample: Any) -> Sequence[LeakageFinding]:
        return self._act(sample)


def raising(error: BaseException) -> Callable[[Any], Any]:
    def act(_: Any) -> Any:
        raise error

    return act


@pytest.mark.parametrize(
    "error", [RuntimeError(ITEM.text), LeakageError(f"saw {ITEM.text}"), RecursionError(), MemoryError()]
)
def test_a_rule_that_raises_blocks_and_says_which(error: Exception) -> None:
    checked = Panel([Odd(raising(error)), IdentifierRule()], [ITEM]).check("s", "clean")
    assert checked.verdict == "block"
    assert checked.findings[0].rule == "odd"
    assert ITEM.text not in checked.model_dump_json()


@pytest.mark.parametrize("answer", [None, ["text"], 7, [None]])
def test_a_rule_that_answers_nonsense_blocks(answer: Any) -> None:
    assert Panel([Odd(lambda _: answer)], [ITEM]).check("s", "clean").verdict == "block"


def test_other_rules_still_run_after_one_failed() -> None:
    checked = Panel([Odd(raising(ValueError())), IdentifierRule()], [ITEM]).check("s", ITEM.text)
    assert {finding.rule for finding in checked.findings} == {"odd", "identifier"}


def test_a_finding_that_quotes_held_out_text_is_withheld() -> None:
    for field in ("reason", "path", "kind"):
        finding = LeakageFinding(rule="x", severity="review", **{field: "it holds q r x 7731 oboe 58"})
        checked = Panel([Odd(lambda _, f=finding: [f])], [ITEM]).check("s", "clean")
        assert checked.verdict == "review"
        assert "7731" not in checked.model_dump_json()


def test_review_is_not_block() -> None:
    panel = Panel([Odd(lambda _: [LeakageFinding(rule="odd", severity="review")])], [ITEM])
    assert panel.check("s", "clean").verdict == "review"


def test_what_cannot_be_read_blocks(check: Callable[[Any], Checked]) -> None:
    checked = check({"a": object()})
    assert (checked.verdict, checked.findings[0].rule) == ("block", "view")


def test_no_rules_no_items_or_no_cover_is_an_error() -> None:
    weak = HeldoutItem(item_id="w", task="t", kind="identifier", text="case-12")
    for rules, items in (([], [ITEM]), ([IdentifierRule()], []), ([IdentifierRule()], [weak])):
        with pytest.raises(LeakageError, match=";"):
            Panel(rules, items)


def test_the_index_has_an_identity() -> None:
    other = ITEM.model_copy(update={"text": "QRX-7731-OBOE-59"})
    one, same, two = (Panel([IdentifierRule()], items).index for items in ([ITEM, other], [other, ITEM], [ITEM]))
    assert one == same != two


def test_findings_hold_no_held_out_text(panel: Panel, heldout: dict[str, HeldoutItem]) -> None:
    for item in heldout.values():
        for sample in (item.text, {item.text: item.text}, json.dumps({item.text: [item.text]}), {"a": {item.text: 1}}):
            said = squash(json.dumps([finding.model_dump() for finding in panel.check("s", sample).findings]))
            assert squash(item.text) not in said


def field_at(sample: Any, path: str) -> Any:
    """Follow a path of plain keys, ordinals and indices."""
    at = sample
    for step in path.replace("[", ".[").split(".")[1:]:
        name, _, key = step.partition("~")
        if name.startswith("["):
            at = at[int(name[1:-1])]
        elif name.startswith("{"):
            found = list(at)[int(name[1:-1])]
            at = found if key else at[found]
        else:
            at = at[name]
    return at if isinstance(at, str) else str(at)


planted = st.sampled_from(
    [
        "QRX-7731-OBOE-58",
        "q\u0301rx\u200b 7731 oboe 58",
        "kestrel_lagoon_418",
        "UVJYLTc3MzEtT0JPRS01OA==",
        "%51RX-7731-OBOE-58",
        "QRX-7731",
    ]
)
leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | planted
leaf |= st.builds(lambda a, b, c: f"{a} {b} {c}", st.text(), planted, st.text(max_size=100))
values = st.recursive(
    leaf,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20) | planted, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(values)
def test_arbitrary_json_never_crashes_and_offsets_are_inside_the_field(value: Any) -> None:
    panel = Panel([load(spec)() for spec in BUILT_IN_RULES], [ITEM, *PATHS])
    checked = panel.check("s", value)
    for finding in checked.findings:
        assert finding.rule in ("identifier", "path")
        text = field_at(value, finding.path)
        assert 0 <= finding.start < finding.end <= len(text)


PATHS = [HeldoutItem(item_id="p", task="t", kind="path", text="/srv/vault/kestrel_lagoon_418/ref/outline.nii.gz")]
