from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bat_core.leakage.batch import Batch
from bat_core.leakage.hashing import Hasher
from bat_core.leakage.normalise import MARK, folded, origin, squash

HASHER = Hasher(b"k" * 32)


def words_of(text: str) -> list[str]:
    batch = Batch([[text]], HASHER)
    return [batch.word(number) for number in range(len(batch.starts)) if batch.word(number) != MARK]


def test_case_marks_and_invisible_characters_go() -> None:
    assert squash("Qr\u200bX\u00ad-77\u030131") == "qrx7731"


def test_look_alikes_become_latin() -> None:
    assert squash("ΒΑsіn") == squash("BAsin")  # noqa: RUF001
    assert squash("ＱＲＸ７７３１") == "qrx7731"  # noqa: RUF001
    assert squash("٧٧٣١") == "7731"


def test_a_point_between_digits_belongs_to_the_number() -> None:
    assert words_of("gain 0.8731, rim 41,7. End") == ["gain", "0.8731", "rim", "41,7", "end"]
    assert words_of("see .8026 and 3.2e-1; a-b 5-6") == ["see", ".8026", "and", "3.2e-1", "a", "b", "5", "6"]


def test_a_mark_within_a_sample_separates_nothing() -> None:
    assert words_of(f"copper{MARK}basin") == ["copper", "basin"]
    batch = Batch([[f"copper{MARK}basin"], ["rim"]], HASHER)
    assert batch.word_samples.tolist() == [-1, 0, 0, 0, 1, 1]


def test_offsets_lead_back_to_the_text_as_given() -> None:
    raw = "x ﬁne \u200bQ\u0301RX-7731!"
    at = folded(raw).index("QRX-7731")
    start, end = origin(raw, at, at + 8)
    assert raw[start:end] == "\u200bQ\u0301RX-7731".lstrip("\u200b")


@given(st.text())
def test_every_span_of_the_folded_text_has_an_origin(raw: str) -> None:
    size = len(folded(raw).encode())
    for start in range(size):
        begin, end = origin(raw, start, start + 1)
        assert 0 <= begin < end <= len(raw)


@given(st.lists(st.lists(st.text(), max_size=3), max_size=3))
def test_words_and_windows_are_those_of_each_sample_alone(samples: list[list[str]]) -> None:
    together = Batch(samples, HASHER)
    for number, texts in enumerate(samples):
        alone = Batch([texts], HASHER)
        mine = together.words[together.word_samples == number]
        assert mine.tolist() == alone.words[alone.word_samples == 0].tolist()


@given(st.binary(max_size=64), st.data())
def test_the_hash_of_a_span_is_that_of_its_bytes(data: bytes, draw: st.DataObject) -> None:
    import numpy as np

    start = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(start, len(data)))
    sums = HASHER.sums(np.frombuffer(data, np.uint8))
    assert int(HASHER.spans(sums, np.array([start]), np.array([end]))[0]) == HASHER.whole(data[start:end])


def test_windows_are_found_wherever_they_begin() -> None:
    import numpy as np

    batch = Batch([["abc-defghijk lmnop"]], HASHER)
    squashed = batch.squashed.tobytes()
    for at in range(len(batch.windows)):
        window = np.frombuffer(squashed[at : at + 8], "<u8")
        assert batch.windows[at] == HASHER.anchors(window)[0]
