"""The ledger: a keyed chain of receipts that only the harness can write."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from bat_core.model.base import canonical_json
from bat_core.model.message import ToolCall
from bat_core.model.receipt import Receipt
from bat_core.model.sandbox import ExecResult

TAIL = 8192
"""Characters of each stream that a receipt keeps."""


class Ledger:
    """Appends receipts.

    Args:
        key: The run's secret.
        provider: Sandbox backend of the rollout.
        before: Receipts that the chain goes on from.
    """

    def __init__(self, key: bytes, provider: str, before: Sequence[Receipt] = ()) -> None:
        self._key = key
        self._provider = provider
        self._last = before[-1].mac if before else ""
        self._seq = len(before)
        self.receipts: list[Receipt] = []

    def add(self, call: ToolCall, result: ExecResult) -> Receipt:
        """Record one executed call."""
        receipt = Receipt(
            seq=self._seq,
            provider=self._provider,
            language=str(call.arguments.get("language", "")),
            code=str(call.arguments.get("code", "")),
            status=result.status,
            rc=result.rc,
            stdout=result.stdout.decode(errors="replace")[-TAIL:],
            stderr=result.stderr.decode(errors="replace")[-TAIL:],
            out_sha=result.out_sha,
            err_sha=result.err_sha,
            ws_before=result.ws_before,
            ws_after=result.ws_after,
            prev=self._last,
        )
        receipt = receipt.model_copy(update={"mac": sign(self._key, receipt)})
        self._seq += 1
        self._last = receipt.mac
        self.receipts.append(receipt)
        return receipt


def sign(key: bytes, receipt: Receipt) -> str:
    """Return the HMAC-SHA256 over all fields but `mac`."""
    body = canonical_json(receipt.model_dump(mode="json", exclude={"mac"}))
    return hmac.new(key, body.encode(), hashlib.sha256).hexdigest()


def verify_chain(key: bytes, receipts: Sequence[Receipt]) -> bool:
    """Return whether every receipt was written with `key` and follows the one before."""
    links = zip(["", *(r.mac for r in receipts)], receipts, strict=False)
    return all(r.prev == prev and hmac.compare_digest(r.mac, sign(key, r)) for prev, r in links)
