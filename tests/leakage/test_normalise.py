from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bat_core.leakage.normalise import Views, squash, words_of


def test_case_marks_and_invisible_characters_go() -> None:
    assert squash("Qr\u200bX\u00ad-77\u030131") == "qrx7731"


def test_look_alikes_become_latin() -> None:
    assert squash("ΒΑsіn") == squash("BAsin")  # noqa: RUF001
    assert squash("ＱＲＸ７７３１") == "qrx7731"  # noqa: RUF001
    assert squash("٧٧٣١") == "7731"


def test_a_point_between_digits_belongs_to_the_number() -> None:
    assert words_of("gain 0.8731, rim 41,7. End") == ["gain", "0.8731", "rim", "41,7", "end"]


def test_offsets_lead_back_to_the_text_as_given() -> None:
    raw = "x ﬁne \u200bQ\u0301RX-7731!"
    views = Views(raw)
    at = views.squashed.index("qrx7731")
    start, end = views.to_raw(views.unsquash(at), views.unsquash(at + 6) + 1)
    assert raw[start:end] == "Q\u0301RX-7731"


@given(st.text())
def test_every_view_maps_into_the_text(raw: str) -> None:
    views = Views(raw)
    for at in range(len(views.squashed)):
        place = views.unsquash(at)
        start, end = views.to_raw(place, place + 1)
        assert 0 <= start < end <= len(raw)
        assert views.folded[place] == views.squashed[at]
    assert len(views.words) == len(views.word_spans)


@given(st.text())
def test_start_grams_are_grams(raw: str) -> None:
    views = Views(raw)
    assert {gram for gram in views.start_grams if len(gram) == 8} <= views.grams
