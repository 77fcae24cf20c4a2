"""The chain of receipts: each is keyed with the run's secret and names the one before."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from bat_core.model.base import canonical_json
from bat_core.model.receipt import Receipt


def sign(key: bytes, receipt: Receipt) -> str:
    """Return the HMAC-SHA256 over all fields but `mac`."""
    body = canonical_json(receipt.model_dump(mode="json", exclude={"mac"}))
    return hmac.new(key, body.encode(), hashlib.sha256).hexdigest()


def verify_chain(key: bytes, receipts: Sequence[Receipt]) -> bool:
    """Return whether every receipt was written with `key` and follows the one before."""
    links = zip(["", *(r.mac for r in receipts)], receipts, strict=False)
    return all(r.prev == prev and hmac.compare_digest(r.mac, sign(key, r)) for prev, r in links)
