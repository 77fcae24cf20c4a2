from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.errors import LeakageError
from bat_core.leakage import view as view_module
from bat_core.leakage.view import view_of

LONG = "the harbour office keeps a ledger of every dredger that has passed the quay"


def texts(value: Any) -> list[str]:
    return [field.text for field in view_of(value).fields]


def place_of(value: Any, needle: str) -> tuple[str, int, int]:
    for field in view_of(value).fields:
        at = field.views.folded.find(needle)
        if at >= 0:
            return tuple(field.place(at, at + len(needle)))
    raise AssertionError(f"{needle} is in no field")


def test_short_values_unusual_keys_and_numbers_are_joined_in_order() -> None:
    assert texts({"a": "one", "QRX-77": ["two", 3, 4.5, True, None]}) == ["one\nQRX-77\ntwo\n3\n4.5"]


def test_places_in_long_and_short_fields() -> None:
    sample = {"notes": [{"text": LONG}, "some basin"]}
    assert place_of(sample, "ledger") == ("$.notes[0].text", 27, 33)
    assert place_of(sample, "basin") == ("$.notes[1]", 5, 10)


def test_a_span_over_two_fields_is_reported_in_the_first() -> None:
    assert place_of({"a": "copper rim", "b": "depth"}, "rim\ndepth") == ("$.a", 7, 10)


def test_unusual_keys_are_scanned_but_never_spelled_out() -> None:
    assert place_of({"a": 1, "QRX-7731": {"b": "deep"}}, "qrx-7731") == ("$.{1}~key", 0, 8)
    assert place_of({"a": 1, "QRX-7731": {"b": "deep"}}, "deep") == ("$.{1}.b", 0, 4)


def test_json_in_strings_is_opened() -> None:
    inner = json.dumps({"note": json.dumps({"deep": LONG})})
    assert LONG in texts({"payload": inner})
    path, start, end = place_of({"payload": inner}, "{")
    assert (path, start, end) == ("$.payload", 0, 1)


@pytest.mark.parametrize(
    "encoded",
    [
        base64.b64encode(b"copper basin rim").decode(),
        base64.urlsafe_b64encode(b"copper basin rim??>>").decode().rstrip("="),
        "id-" + base64.b64encode(b"copper basin rim").decode(),
        b"copper basin rim".hex(),
        b"copper basin rim".hex(" "),
        "0x" + b"copper basin rim".hex().upper(),
        "copper%20basin%20rim",
        "copper&#32;basin&nbsp;rim",
        r"copper\u0020basin\x20rim",
        base64.b64encode(b"copper%20basin%20rim").decode(),
        base64.b64encode(b"copper basin rim".hex().encode()).decode(),
    ],
)
def test_encodings_are_undone(encoded: str) -> None:
    value = {"a": ["quiet", f"got {encoded} back"]}
    place = place_of(value, "basin") if "basin" in encoded else place_of(value, "copper basin rim")
    assert place[0] == "$.a[1]"
    assert 0 <= place[1] < place[2] <= len(value["a"][1])


def test_offsets_stay_exact_beside_an_escape() -> None:
    field = LONG + " caf%C3%A9 copper basin"
    assert place_of({"a": field}, "copper") == ("$.a", field.index("copper"), field.index("copper") + 6)
    sample = {"a": "caf%C3%A9", "b": "copper"}
    assert place_of(sample, "cafe") == ("$.a", 0, 9)


def test_five_thousand_levels_are_walked() -> None:
    deep: Any = "copper basin"
    for _ in range(5000):
        deep = [{"k": deep}]
    path, start, end = place_of(deep, "basin")
    assert (start, end) == (7, 12)
    assert len(path) < 200


@pytest.mark.parametrize(
    ("bound", "sample"),
    [("MAX_CHARS", ["x" * 600] * 2), ("MAX_FIELDS", [0] * 600), ("MAX_DECODED", ["%41" * 600])],
)
def test_too_large_a_sample_is_an_error(bound: str, sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    view_of(sample)
    monkeypatch.setattr(view_module, bound, 500)
    with pytest.raises(LeakageError, match="leave it out of training"):
        view_of(sample)


def test_values_that_are_not_json_are_errors() -> None:
    with pytest.raises(LeakageError, match="holds a set"):
        view_of({"a": {1, 2}})


def test_a_huge_integer_is_read() -> None:
    assert texts([1 << 100_000])[0].startswith("0x1000")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_every_word_has_a_place_inside_its_field(value: Any) -> None:
    for field in view_of(value).fields:
        for start, end in field.views.word_spans:
            path, begin, stop = field.place(start, end)
            assert path.startswith("$")
            assert 0 <= begin < stop
