"""Receipts: the checker's word, signed, for which samples were checked against which index with which outcome."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from typing import Any

from bat_core.errors import LeakageError
from bat_core.model.base import JsonObject, Value, canonical_json
from bat_core.model.leakage import Checked


class LeakageReceipt(Value):
    """What a checker vouches for.

    Attributes:
        samples: Digest of the samples as they were sent.
        index: Identity of the held-out items and rules.
        counts: Samples by verdict.
        time: When, in seconds since 1970, by the checker's clock.
        mac: HMAC-SHA256 of all this under the receipt key.
    """

    samples: str
    index: str
    counts: dict[str, int]
    time: int
    mac: str = ""


def digest_of_samples(body: bytes) -> str:
    """Return the digest of samples as they are sent."""
    return "sha256:" + hashlib.sha256(body).hexdigest()


def encoded_again(request: Any) -> bytes:
    """Return the JSON text of a request, which is the text that it was read from: both sides write it alike."""
    return json.dumps(request, separators=(",", ":")).encode()


def signed(key: bytes, request: Any, index: str, checked: Sequence[Checked]) -> JsonObject:
    """Return a receipt for a request and its answers."""
    counts = {"pass": 0, "review": 0, "block": 0}
    for one in checked:
        counts[one.verdict] += 1
    samples = digest_of_samples(encoded_again(request))
    receipt = LeakageReceipt(samples=samples, index=index, counts=counts, time=int(time.time()))
    return receipt.model_copy(update={"mac": _mac(key, receipt)}).model_dump(mode="json")


def verified(key: bytes, receipt: Any, body: bytes, index: str, checked: Sequence[Checked]) -> LeakageReceipt:
    """Return a receipt that is genuine and is for these samples, this index and these verdicts.

    Raises:
        LeakageError: It isn't.
    """
    remedy = "nothing was cleared; check the receipt key and which checker answers"
    try:
        read = LeakageReceipt.model_validate(receipt)
    except ValueError as error:
        raise LeakageError("the leakage checker gave no receipt", remedy=remedy) from error
    if not hmac.compare_digest(read.mac, _mac(key, read)):
        raise LeakageError("the leakage checker's receipt has a false signature", remedy=remedy)
    counts = {name: sum(one.verdict == name for one in checked) for name in ("pass", "review", "block")}
    if (read.samples, read.index, read.counts) != (digest_of_samples(body), index, counts):
        raise LeakageError("the leakage checker's receipt is for other samples or verdicts", remedy=remedy)
    return read


def _mac(key: bytes, receipt: LeakageReceipt) -> str:
    said = canonical_json(receipt.model_copy(update={"mac": ""}))
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()
