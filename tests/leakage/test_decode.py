from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.leakage.batch import Batch
from bat_core.leakage.decode import decode
from bat_core.leakage.decoded import suspects
from bat_core.leakage.hashing import Hasher
from bat_core.model.leakage import Checked

HASHER = Hasher(b"k" * 32)
PLAIN = "QRX-7731-OBOE-58"
LONG = "the harbour office keeps a ledger of every dredger that has passed the quay"

ENCODED: dict[str, str] = {
    "base64": base64.b64encode(PLAIN.encode()).decode(),
    "url-safe": base64.urlsafe_b64encode(PLAIN.encode()).decode().rstrip("="),
    "after a prefix": "id-" + base64.b64encode(PLAIN.encode()).decode(),
    "base32": base64.b32encode(PLAIN.encode()).decode(),
    "hex": PLAIN.encode().hex(),
    "hex, spaced": PLAIN.encode().hex(" "),
    "hex, colons": PLAIN.encode().hex(":"),
    "hex, 0x": "0x" + PLAIN.encode().hex().upper(),
    "percent": quote(PLAIN, safe="").replace("Q", "%51"),
    "html": "QRX&#45;77&#x33;1&hyphen;OBOE&#45;58",
    "escapes": r"\u0051RX\x2d7731\055OBOE-58",
    "gzip": base64.b64encode(gzip.compress(f"{PLAIN} and more".encode())).decode(),
    "zlib": zlib.compress(PLAIN.encode()).hex(),
    "twice": base64.b64encode(quote(PLAIN, safe="").replace("Q", "%51").encode()).decode(),
    "base64 of hex": base64.b64encode(PLAIN.encode().hex().encode()).decode(),
    "quoted-printable": "QRX=2D7731=2DOBOE=\n-58",
}


@pytest.mark.parametrize("how", ENCODED)
def test_encodings_are_undone_and_the_place_is_that_of_the_encoded_text(
    how: str, check: Callable[[object], Checked]
) -> None:
    sample = {"text": ["quiet", f"got {ENCODED[how]} back"]}
    checked = check(sample)
    assert checked.verdict == "block"
    finding = checked.findings[0]
    assert finding.path == "$.text[1]"
    assert 0 <= finding.start < finding.end <= len(sample["text"][1])


def test_offsets_stay_exact_beside_an_escape(check: Callable[[object], Checked]) -> None:
    field = LONG + " caf%C3%A9 QRX%2D7731-OBOE-58 end"
    found = [finding for finding in check({"text": field}).findings if "decoding" in finding.reason]
    assert field[found[0].start : found[0].end] == "QRX%2D7731-OBOE-58"


def test_three_layers_are_one_too_many() -> None:
    once = base64.b64encode(b"copper basin rim")
    assert [found.text for found in decode(once.decode())] == ["copper basin rim"]
    assert next(iter(decode(base64.b64encode(once).decode()))).text == once.decode()


def test_bytes_that_are_no_text_are_none() -> None:
    assert list(decode(base64.b64encode(bytes(range(128, 228))).decode())) == []


@given(st.binary(min_size=12, max_size=80), st.text(max_size=20), st.text(max_size=20))
def test_what_the_cheap_look_passes_over_decodes_to_nothing(data: bytes, before: str, after: str) -> None:
    for body in (base64.b64encode(data).decode(), data.hex(), data.hex(" "), quote(data)):
        text = f"{before} {body} {after}"
        if not list(suspects(Batch([[text]], HASHER))):
            assert list(decode(text)) == []


@given(st.text(max_size=200))
def test_pieces_lie_within_the_text(text: str) -> None:
    for found in decode(text):
        for start in range(len(found.text)):
            begin, end = found.origin(start, start + 1)
            assert 0 <= begin <= end <= len(text)
