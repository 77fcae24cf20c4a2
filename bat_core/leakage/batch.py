"""Many samples as one text, read once with array operations: letters, words, chunks, and their fingerprints.

Texts of a sample follow each other line by line, in its order: what was split over fields or turns is whole again.
Between samples stands a mark that is a word of its own, so nothing that crosses it can match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bat_core.leakage.hashing import U64, Bytes, Hasher, Ints
from bat_core.leakage.normalise import MARK, folded

WINDOW = 8
"""Letters and digits in a window: no shorter text can be looked for."""

_EDGE = f"\n{MARK}\n"
_ALNUM, _DIGIT, _POINT, _SIGN, _SPACE = 1, 2, 4, 8, 16


def _classes() -> Bytes:
    classes = np.zeros(256, np.uint8)
    for code in range(256):
        char = chr(code)
        if code >= 0x80 or char == MARK or (char.isascii() and char.isalnum()):
            classes[code] |= _ALNUM
        if char in "0123456789":
            classes[code] |= _DIGIT
        if char in ".,":
            classes[code] |= _POINT
        if char in "+-":
            classes[code] |= _SIGN
        if (code <= 0x20 and char != MARK) or char in "\"'`()[]{}<>|=,;":
            classes[code] |= _SPACE
    return classes


_CLASS = _classes()
_LOWER = np.array([ord(chr(code).lower()) if code < 0x80 else code for code in range(256)], np.uint8)
_S = ord("s")
_E = ord("e")


class Batch:
    """Samples as one text.

    Args:
        samples: For each sample its texts.
        hasher: The key.
        depth: How often these texts were decoded.
        hidden: For each sample whether nothing of it could be read before it was decoded.
    """

    def __init__(
        self, samples: Sequence[Sequence[str]], hasher: Hasher, depth: int = 0, hidden: Sequence[bool] = ()
    ) -> None:
        self.samples = samples
        self.hasher = hasher
        self.depth = depth
        self.hidden = np.array(hidden or [False] * len(samples), bool)
        pieces = [_EDGE]
        for texts in samples:
            pieces.append(folded("\n".join(texts)))
            pieces.append(_EDGE)
        self.text = "".join(pieces).encode()
        self.raw: Bytes = np.frombuffer(self.text, np.uint8)
        self.low: Bytes = _LOWER[self.raw]
        self.classes: Bytes = _CLASS[self.raw]
        self._pieces = pieces

    @cached_property
    def sample_starts(self) -> Ints:
        """Where each sample begins in the text, and where the last one ends."""
        lengths = [len(piece) if piece.isascii() else len(piece.encode()) for piece in self._pieces]
        return np.cumsum(lengths)[0::2]

    @cached_property
    def _leaves(self) -> tuple[Ints, Ints]:
        """Where each text begins, of all samples in order, and the number of the first one of each sample."""
        lengths = [
            (len(text) if text.isascii() else len(folded(text).encode())) + 1
            for texts in self.samples
            for text in texts
        ]
        counts = np.array([len(texts) for texts in self.samples], np.int64)
        first = np.cumsum(counts) - counts
        stops = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))])
        inside = stops[:-1] - np.repeat(stops[first], counts)
        return inside + np.repeat(self.sample_starts[:-1], counts), first

    def leaf(self, sample: int, position: int) -> tuple[int, int]:
        """Return which text of a sample holds a position, and where it begins."""
        starts, first = self._leaves
        low = int(first[sample])
        mine = starts[low : low + len(self.samples[sample])]
        number = max(int(mine.searchsorted(position, "right")) - 1, 0)
        return number, int(mine[number])

    def sample_of(self, positions: Ints) -> Ints:
        """Return to which sample positions of the text belong."""
        return np.searchsorted(self.sample_starts, positions, "right") - 1

    # Words

    @cached_property
    def _word_bounds(self) -> tuple[Ints, Ints]:
        inside = self.classes & _ALNUM
        points = np.flatnonzero(self.classes & (_POINT | _SIGN))
        before, after = self.classes[points - 1], self.classes[points + 1]
        digits = (before & after & _DIGIT) > 0
        power = (self.low[points - 1] == _E) & ((self.classes[points - 2] & after & _DIGIT) > 0)
        joins = np.where(self.classes[points] & _POINT, digits, power)
        inside[points[joins]] = 1
        edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
        return edges[0::2], edges[1::2]

    @property
    def starts(self) -> Ints:
        """Where words begin."""
        return self._word_bounds[0]

    @property
    def ends(self) -> Ints:
        """Where words end."""
        return self._word_bounds[1]

    @cached_property
    def _sums(self) -> U64:
        return self.hasher.sums(self.low)

    @cached_property
    def words(self) -> U64:
        """Fingerprint of each word. A point or comma between digits belongs to the number."""
        return self.hasher.spans(self._sums, self.starts, self.ends)

    @cached_property
    def stems(self) -> U64:
        """Fingerprint of each word without the s of its plural."""
        plural = (self.low[self.ends - 1] == _S) & (self.ends - self.starts > 4)
        stems = self.words.copy()
        starts, ends = self.starts[plural], self.ends[plural] - 1
        stems[plural] = self.hasher.spans(self._sums, starts, ends)
        return stems

    @cached_property
    def grams(self) -> U64:
        """Fingerprint of each run of three words, by its first one."""
        words = self.words
        return self.hasher.together(words[:-2], words[1:-1], words[2:])

    @cached_property
    def numerals(self) -> Ints:
        """Which words begin with a digit."""
        return np.flatnonzero(self.classes[self.starts] & _DIGIT)

    @cached_property
    def word_samples(self) -> Ints:
        """To which sample each word belongs."""
        return self.sample_of(self.starts)

    def word(self, number: int) -> str:
        """Return a word, with the point that may stand before its first digit."""
        start = int(self.starts[number])
        if self.text[start - 1 : start] == b"." and not self.classes[start - 2] & _ALNUM:
            start -= 1
        return self.text[start : int(self.ends[number])].decode(errors="replace").lower()

    # Letters and digits without what separates them

    @cached_property
    def places(self) -> Ints:
        """Where each letter or digit stands in the text."""
        return np.flatnonzero(self.classes & _ALNUM)

    @cached_property
    def squashed(self) -> Bytes:
        """Only letters and digits."""
        return self.low[self.places]

    @cached_property
    def windows(self) -> U64:
        """Fingerprint of each window of eight letters and digits, by its first one."""
        data = np.concatenate([self.squashed, np.zeros(2 * WINDOW, np.uint8)])
        count = len(self.squashed)
        windows = np.empty(count + WINDOW, np.uint64)
        for shift in range(WINDOW):
            part = data[shift : shift + (count - shift + WINDOW - 1) // WINDOW * WINDOW].view(np.uint64)
            windows[shift::WINDOW][: len(part)] = part
        return self.hasher.anchors(windows[: max(0, count - WINDOW + 1)])

    @cached_property
    def squashed_sums(self) -> U64:
        """Prefix sums of letters and digits, from which the hasher takes the fingerprint of any span of them."""
        return self.hasher.sums(self.squashed)

    @cached_property
    def _chunk_bounds(self) -> tuple[Ints, Ints]:
        spaces = np.flatnonzero(self.classes & _SPACE)
        letters = np.cumsum(self.classes & _ALNUM, dtype=np.int32)[spaces].astype(np.int64)
        full = np.flatnonzero(letters[1:] > letters[:-1])
        return letters[full], letters[full + 1]

    @cached_property
    def chunk_starts(self) -> Ints:
        """First letter or digit of each chunk: what stands between spaces, quotes or brackets."""
        return self._chunk_bounds[0]

    @cached_property
    def chunks(self) -> U64:
        """Fingerprint of the letters and digits of each chunk."""
        return self.hasher.spans(self.squashed_sums, *self._chunk_bounds)
