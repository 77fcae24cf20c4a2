from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.errors import LeakageError
from bat_core.leakage import leaves
from bat_core.leakage.leaves import leaves_of, texts_of
from bat_core.leakage.paths import render

LONG = "the harbour office keeps a ledger of every dredger that has passed the quay"


def places(value: Any) -> dict[str, str]:
    return {leaf.text: render(leaf.node) for leaf in leaves_of(value)}


def test_values_telling_keys_and_numbers_in_order() -> None:
    sample = {"role": "one", "QRX-77": ["two", 3, 4.5, True, None], "copper_rim": 0.5}
    assert texts_of(sample) == ["one", "QRX-77", "two", "3", "4.5", "copper_rim", "0.5"]


def test_places() -> None:
    sample = {"notes": [{"text": LONG}, "some basin"]}
    assert places(sample) == {"notes": "$.notes~key", LONG: "$.notes[0].text", "some basin": "$.notes[1]"}


def test_unusual_keys_are_scanned_but_never_spelled_out() -> None:
    assert places({"role": 1, "QRX-7731": {"x": "deep"}})["QRX-7731"] == "$.{1}~key"
    assert places({"role": 1, "QRX-7731": {"x": "deep"}})["deep"] == "$.{1}.x"


def test_json_in_strings_is_opened() -> None:
    inner = json.dumps({"note": json.dumps({"deep": LONG})})
    assert LONG in texts_of({"data": inner})
    found = next(leaf for leaf in leaves_of({"data": inner}) if leaf.text == LONG)
    assert (render(found.node), found.within) == ("$.data.note.deep", len(inner))


def test_a_key_that_stands_twice_keeps_the_string_closed() -> None:
    assert texts_of(['{"role": "copper", "role": "basin"}']) == ['{"role": "copper", "role": "basin"}']


def test_five_thousand_levels_are_walked() -> None:
    deep: Any = "copper basin"
    for _ in range(5000):
        deep = [{"key": deep}]
    assert texts_of(deep) == ["copper basin"]
    assert len(places(deep)["copper basin"]) < 200


@pytest.mark.parametrize(("bound", "sample"), [("MAX_CHARS", ["x" * 600] * 2), ("MAX_LEAVES", [0] * 600)])
def test_too_large_a_sample_is_an_error(bound: str, sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts_of(sample)
    monkeypatch.setattr(leaves, bound, 500)
    with pytest.raises(LeakageError, match="leave it out of training"):
        texts_of(sample)


def test_values_that_are_not_json_are_errors() -> None:
    with pytest.raises(LeakageError, match="holds a set"):
        texts_of({"a": {1, 2}})


def test_a_huge_integer_is_read() -> None:
    assert texts_of([1 << 100_000])[0].startswith("0x1000")


inner_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.sampled_from(["role", "content"]), inner, max_size=4)
        | st.builds(json.dumps, inner)
        | st.builds(lambda value: f" {json.dumps(value)}\n", inner)
    ),
    max_leaves=20,
)


@given(inner_json)
def test_both_walks_see_the_same_texts(value: Any) -> None:
    assert texts_of(value) == [leaf.text for leaf in leaves_of(value)]
