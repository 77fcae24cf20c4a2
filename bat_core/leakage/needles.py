"""Many exact needles at once in the letters and digits of a batch, with the boundaries of the text respected.

A needle is known by the fingerprint of its rarest window of eight, and by the fingerprint of the whole.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import WINDOW, Batch
from bat_core.leakage.counts import Counts
from bat_core.leakage.hashing import Bytes, Hasher, Ints
from bat_core.leakage.table import Table

_DIGEST = 32
_SHORT_COMMIT = 7
_TAIL = 12
_ALNUM = 1
_HEX = frozenset("0123456789abcdef")
_HEX_BYTES = np.isin(np.arange(256), np.frombuffer(b"0123456789abcdef", np.uint8))
_BOUNDED, _PREFIX = 1, 2
Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Needle:
    """A squashed text to find.

    Attributes:
        text: At least `WINDOW` letters and digits.
        kind: Number of the kind of its item.
        bounded: Must not begin or end inside a number or name; else it counts anywhere.
        prefix: The beginning of a digest: more hexadecimal digits may follow.
    """

    text: str
    kind: int
    bounded: bool = True
    prefix: bool = False


class Hit(NamedTuple):
    """A needle that was found, and its span in the text of the batch."""

    sample: int
    kind: int
    start: int
    end: int


class NeedleIndex:
    """Needles by their rarest windows."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = dict(arrays)
        self._table = Table(arrays["anchors"].astype(np.uint64))
        self._offsets: Ints = arrays["offsets"].astype(np.int64)
        self._lengths: Ints = arrays["lengths"].astype(np.int64)
        self._hashes = arrays["hashes"].astype(np.uint64)
        self._flags: Bytes = arrays["flags"].astype(np.uint8)
        self._kinds: Ints = arrays["kinds"].astype(np.int64)
        self._beginnings = Table(arrays["beginnings"].astype(np.uint64))

    @classmethod
    def of(
        cls, needles: Iterable[Needle], hasher: Hasher, seen: Counts | None = None, digests: Iterable[str] = ()
    ) -> NeedleIndex:
        """Return an index of needles and of the beginnings of digests; `seen` counts the windows of clean text."""
        chosen = [needle for needle in dict.fromkeys(needles) if len(needle.text.encode()) >= WINDOW]
        if not chosen:
            none = np.zeros(0, np.uint64)
            names = ("anchors", "offsets", "lengths", "hashes", "flags", "kinds", "beginnings")
            return cls(dict.fromkeys(names, none))
        texts = [needle.text.encode() for needle in chosen]
        anchors, offsets = _rarest(texts, hasher, seen)
        order = np.argsort(anchors, kind="stable")
        flags = [_BOUNDED * needle.bounded + _PREFIX * needle.prefix for needle in chosen]
        return cls(
            {
                "anchors": anchors[order],
                "offsets": offsets[order].astype(np.uint16),
                "lengths": np.array([len(text) for text in texts], np.uint32)[order],
                "hashes": np.array([hasher.whole(text) for text in texts], np.uint64)[order],
                "flags": np.array(flags, np.uint8)[order],
                "kinds": np.array([needle.kind for needle in chosen], np.uint8)[order],
                "beginnings": _beginnings(digests, hasher),
            }
        )

    def search(self, batch: Batch) -> Iterator[Hit]:
        """Yield the accepted places of all needles."""
        found = self._table.find(batch.windows)
        begins, rows = found.at - self._offsets[found.rows], found.rows
        inside = np.flatnonzero((begins >= 0) & (begins + self._lengths[rows] <= len(batch.squashed)))
        begins, rows = begins[inside], rows[inside]
        hashes = batch.hasher.spans(batch.squashed_sums, begins, begins + self._lengths[rows])
        same = np.flatnonzero(hashes == self._hashes[rows])
        for begin, row in zip(begins[same].tolist(), rows[same].tolist(), strict=True):
            length = int(self._lengths[row])
            start, end = int(batch.places[begin]), int(batch.places[begin + length - 1]) + 1
            flags = int(self._flags[row])
            if flags & _PREFIX:
                end = _digest_end(batch, end)
                longer = batch.squashed[begin : begin + end - start].tobytes()
                if end - start > length and not len(self._beginnings.contains(_one(batch.hasher, longer))[0]):
                    continue
            if flags & _BOUNDED and not (_boundary(batch, start - 1, start) and _boundary(batch, end - 1, end)):
                continue
            sample = int(batch.sample_of(np.array([start]))[0])
            yield Hit(sample, int(self._kinds[row]), start, end)


def variants(squashed: str) -> set[str]:
    """Return a squashed text forwards, backwards and in rot13."""
    return {squashed, squashed[::-1], codecs.encode(squashed, "rot13")}


def is_digest(squashed: str) -> bool:
    """Whether a squashed text is a digest: 32 or more hexadecimal digits."""
    return len(squashed) >= _DIGEST and _HEX.issuperset(squashed)


def _beginnings(digests: Iterable[str], hasher: Hasher) -> NDArray[np.uint64]:
    """Return the fingerprints of all beginnings of digests, in order."""
    hashes = [
        hasher.spans(hasher.sums(data), np.zeros(len(data), np.int64), np.arange(1, len(data) + 1))[WINDOW - 1 :]
        for data in (np.frombuffer(digest.encode(), np.uint8) for digest in digests)
    ]
    return np.sort(np.concatenate(hashes)) if hashes else np.zeros(0, np.uint64)


def _one(hasher: Hasher, data: bytes) -> NDArray[np.uint64]:
    return np.array([hasher.whole(data)], np.uint64)


def digest_needles(squashed: str, kind: int) -> list[Needle]:
    """Return the needles of a digest: its beginning, in which not all may be digits, and its end."""
    length = WINDOW
    while length < len(squashed) and (squashed[:length].isdigit() or squashed[:length].isalpha()):
        length += 1
    return [Needle(squashed[:length], kind, prefix=True), Needle(squashed[-_TAIL:], kind)]


def _rarest(texts: Sequence[bytes], hasher: Hasher, seen: Counts | None) -> tuple[NDArray[np.uint64], Ints]:
    """Return the fingerprint and offset of the window of each text that clean text has least often."""
    anchors, offsets = np.empty(len(texts), np.uint64), np.zeros(len(texts), np.int64)
    for number, text in enumerate(texts):
        windows = np.array([int.from_bytes(text[i : i + WINDOW], "little") for i in range(len(text) - WINDOW + 1)])
        hashes = hasher.anchors(windows.astype(np.uint64))
        best = 0 if seen is None else int(np.argmin(seen.of(hashes)))
        anchors[number], offsets[number] = hashes[best], best
    return anchors, offsets


def _digest_end(batch: Batch, end: int) -> int:
    """Return where the hexadecimal digits end that go on without a gap."""
    while _HEX_BYTES[batch.low[end]]:
        end += 1
    return end


def _boundary(batch: Batch, left: int, right: int) -> bool:
    """Whether there is a boundary between two neighbours: a separator, or the hump of camel case."""
    if not (batch.classes[left] & batch.classes[right] & _ALNUM):
        return True
    before, after = chr(batch.raw[left]), chr(batch.raw[right])
    return before.isascii() and after.isascii() and before.islower() and after.isupper()
