"""Identifiers in two pieces, each somewhere in the sample: a chunk that is the head, another that is the rest.

For each way to cut an identifier the rarer piece is looked for; only where it stands is the other one looked for too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bat_core.leakage.batch import Batch
from bat_core.leakage.counts import Counts
from bat_core.leakage.hashing import Hasher, Ints
from bat_core.leakage.needles import Hit
from bat_core.leakage.table import Table

_LEAST_PIECE = 2
_LEAST_BITS = 24.0
_LETTER_BITS = 3.3
Arrays = Mapping[str, NDArray[np.generic]]


class HalfIndex:
    """Identifiers by their pieces."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = dict(arrays)
        self._table = Table(arrays["rare"].astype(np.uint64))
        self._rest = arrays["rest"].astype(np.uint64)
        self._kinds: Ints = arrays["kinds"].astype(np.int64)

    @classmethod
    def of(cls, texts: Sequence[tuple[str, int]], hasher: Hasher, seen: Counts | None) -> HalfIndex:
        """Return an index of squashed identifiers, each with the number of its kind; `seen` counts clean chunks."""
        rows = [row for text, kind in texts for row in _cuts(text.encode(), kind, hasher, seen)]
        hashes = np.array([row[0] for row in rows], np.uint64)
        order = np.argsort(hashes, kind="stable")
        return cls(
            {
                "rare": hashes[order],
                "rest": np.array([row[1] for row in rows], np.uint64)[order],
                "kinds": np.array([row[2] for row in rows], np.uint8)[order],
            }
        )

    def search(self, batch: Batch) -> Iterator[Hit]:
        """Yield identifiers of which both pieces stand in a sample."""
        found = self._table.find(batch.chunks)
        if not len(found.at):
            return
        chunk_samples = batch.sample_of(batch.places[batch.chunk_starts])
        for at, row in zip(found.at.tolist(), found.rows.tolist(), strict=True):
            sample = int(chunk_samples[at])
            low, high = np.searchsorted(chunk_samples, [sample, sample + 1])
            if (batch.chunks[low:high] == self._rest[row]).any():
                start = int(batch.places[batch.chunk_starts[at]])
                yield Hit(sample, int(self._kinds[row]), start, start + 1)


def _cuts(text: bytes, kind: int, hasher: Hasher, seen: Counts | None) -> Iterator[tuple[int, int, int]]:
    """Yield the fingerprints of the rarer and the other piece for each cut that is telling enough."""
    for cut in range(_LEAST_PIECE, len(text) - _LEAST_PIECE + 1):
        pieces = (text[:cut], text[cut:])
        hashes = [hasher.whole(piece) for piece in pieces]
        bits = [_LETTER_BITS * len(piece) for piece in pieces]
        if seen is not None and seen.total:
            counts = seen.of(np.array(hashes, np.uint64))
            bits = [
                min(most, -float(np.log2((count + 0.5) / (seen.total + 1)))) if count else most
                for most, count in zip(bits, counts.tolist(), strict=True)
            ]
        if sum(bits) >= _LEAST_BITS:
            rare = int(bits[1] >= bits[0])
            yield hashes[rare], hashes[1 - rare], kind
