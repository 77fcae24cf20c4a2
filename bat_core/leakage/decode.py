"""One layer of decoding: what a text says once base64, hex, percent, HTML or backslash escapes are undone.

Each decoder is tried only where a cheap regular expression picks. Reversal and rot13 are not here: they cost
nothing on the index side, where every held-out text is indexed in those forms too.
"""

from __future__ import annotations

import base64
import binascii
import html
import quopri
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

DEPTH = 2
"""How many layers are undone."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}(?:={1,2}|(?![A-Za-z0-9+/_=-]))")
_WRAPPED = re.compile(r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{60,76}\r?\n)+[A-Za-z0-9+/]{1,76}={0,2}")
_BASE32 = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{16,}={0,6}(?![A-Za-z0-9=])")
_CAPITALS = re.compile(r"[A-Z]+")
_HEX = re.compile(r"[0-9A-Fa-f]{16,}")
_SPACED_HEX = re.compile(r"\b(?:[0-9A-Fa-f]{2}[ :]){7,}[0-9A-Fa-f]{2}\b")
_ESCAPED = re.compile(
    r"(?:%[0-9A-Fa-f]{2})+"
    r"|(?:=[0-9A-F]{2}|=\r?\n)+"
    r"|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,24});"
    r"|(?:\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\[0-3][0-7]{2}|\\[nrt\"'/\\])+"
)
_QUOTED = re.compile(r"=(?:[2-7][A-F]|[A-F][0-9A-F])")
_ONE_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\x([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})|\\(.)")
_WORDS = "zero one two three four five six seven eight nine"
_DIGITS = {
    **{
        word: digit
        for digit, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    },
    **dict.fromkeys(("oh", "nought", "naught"), 0),
}
_DIGIT = "|".join(_DIGITS)
_SPOKEN = re.compile(rf"\b(?:{_DIGIT})(?:[\s-]+(?:{_DIGIT}))*[\s-]+point(?:[\s-]+(?:{_DIGIT}))+\b", re.IGNORECASE)
_LINE = 60
_INFLATED = 1_000_000
_DIGEST_BYTES = {16, 20, 32, 48, 64}


class Piece(NamedTuple):
    """A piece of decoded text: `at` which offset, and from which span of the encoded one; `exact` if unchanged."""

    at: int
    start: int
    end: int
    exact: bool


class Decoded(NamedTuple):
    """A decoded text and where its pieces come from."""

    decoder: str
    text: str
    pieces: tuple[Piece, ...]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the encoded text from which a span of this one comes."""
        starts = [piece.at for piece in self.pieces]
        first = self.pieces[max(0, bisect_right(starts, start) - 1)]
        last = self.pieces[max(0, bisect_right(starts, max(start, end - 1)) - 1)]
        begin = min(first.start + start - first.at, first.end) if first.exact else first.start
        stop = min(last.start + end - last.at, last.end) if last.exact else last.end
        return begin, max(begin, stop)


def decode(text: str) -> Iterator[Decoded]:
    """Yield every decoding of one layer that a text invites."""
    yield from _blobs(text)
    if "%" in text or "&" in text or "\\" in text or _QUOTED.search(text):
        yield from _substituted(text, _ESCAPED, _plain)
    if "point" in text.casefold():
        yield from _substituted(text, _SPOKEN, _spelled)


def looks_base64(run: str) -> bool:
    """Whether capitals come and go as they do in base64, not as in words, paths and options."""
    return len(_CAPITALS.findall(run)) >= max(2, len(run) // 16) and not run.isupper()


def _blobs(text: str) -> Iterator[Decoded]:
    """Yield decodings of self-contained runs; their offsets are those of the whole run."""
    for match in _BASE64.finditer(text):
        if looks_base64(match.group()):
            yield from _whole("base64", match.group(), *match.span())
    for match in _WRAPPED.finditer(text) if "\n" in text and len(text) > _LINE else ():
        yield from _whole("base64", "".join(match.group().split()), *match.span())
    for match in _BASE32.finditer(text):
        yield from _whole("base32", match.group(), *match.span())
    for match in _HEX.finditer(text):
        if len(match.group()) % 2 == 0:
            yield from _whole("hex", match.group(), *match.span())
    for match in _SPACED_HEX.finditer(text):
        yield from _whole("hex", match.group().replace(":", " "), *match.span())


def _whole(decoder: str, run: str, start: int, end: int) -> Iterator[Decoded]:
    for data in _bytes(decoder, run):
        plain = _utf8(_inflated(data))
        if plain is not None and not _readable(plain):
            plain = None
        if plain is None and decoder != "hex" and len(data) in _DIGEST_BYTES:
            plain = data.hex()
        if plain is not None:
            yield Decoded(decoder, plain, (Piece(0, start, end, False),))


def _bytes(decoder: str, run: str) -> Iterator[bytes]:
    if decoder == "base64":
        yield from _base64_bytes(run)
    elif decoder == "base32":
        body = run.rstrip("=")
        with suppress(binascii.Error):
            yield base64.b32decode(body + "=" * (-len(body) % 8))
    else:
        yield bytes.fromhex(run)


def _inflated(data: bytes) -> bytes:
    """Return what bytes hold compressed with gzip or zlib, cut at a bound, else themselves."""
    if data[:2] == b"\x1f\x8b" or (data[:1] == b"\x78" and len(data) > 6):
        with suppress(zlib.error):
            return zlib.decompressobj(wbits=47).decompress(data, _INFLATED)
    return data


def _base64_bytes(run: str) -> Iterator[bytes]:
    """Yield the bytes of a run, and of what follows a prefix such as `data-` or `id_`."""
    standard = run.rstrip("=").replace("-", "+").replace("_", "/")
    starts = [0, *(i + 1 for i, char in enumerate(run[:24]) if char in "-_/")]
    for start in starts[:4]:
        body = standard[start:]
        if len(body) < 10 or len(body) % 4 == 1:
            continue
        try:
            yield base64.b64decode(body + "=" * (-len(body) % 4))
        except binascii.Error:
            continue


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _readable(text: str) -> bool:
    """Whether decoded bytes look like text: random bytes seldom do."""
    bad = sum(not char.isprintable() and char not in "\n\r\t" for char in text)
    return bad * 10 <= len(text)


def _unescape(run: str) -> str:
    chars = []
    for code4, code8, byte, octal, simple in _ONE_ESCAPE.findall(run):
        if simple:
            chars.append({"n": "\n", "r": "\r", "t": "\t"}.get(simple, simple))
        else:
            point = int(octal, 8) if octal else int(code4 or code8 or byte, 16)
            chars.append(chr(point) if point < 0x110000 else "")
    return _paired("".join(chars))


def _paired(text: str) -> str:
    """Join surrogate pairs, which JSON spells as two escapes."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(match: re.Match[str]) -> str:
    """Return what a run of escapes stands for."""
    run = match.group()
    if run[0] == "%":
        return unquote_to_bytes(run).decode(errors="replace")
    if run[0] == "=":
        return quopri.decodestring(run.encode()).decode(errors="replace")
    return html.unescape(run) if run[0] == "&" else _unescape(run)


def _spelled(match: re.Match[str]) -> str:
    """Return a number that was spelled out in digits."""
    words = re.split(r"[\s-]+", match.group().casefold())
    return "".join("." if word == "point" else str(_DIGITS[word]) for word in words)


def _substituted(text: str, pattern: re.Pattern[str], plain: Callable[[re.Match[str]], str]) -> Iterator[Decoded]:
    """Yield a text with all matches undone, if there are any; the rest keeps exact offsets."""
    out: list[str] = []
    pieces: list[Piece] = []
    at = done = 0
    for match in pattern.finditer(text):
        new = plain(match)
        for start, end, part, exact in (
            (done, match.start(), text[done : match.start()], True),
            (match.start(), match.end(), new, False),
        ):
            if part:
                pieces.append(Piece(at, start, end, exact))
                out.append(part)
                at += len(part)
        done = match.end()
    if not done:
        return
    if done < len(text):
        pieces.append(Piece(at, done, len(text), True))
        out.append(text[done:])
    if pieces:
        yield Decoded("escape", "".join(out), tuple(pieces))
