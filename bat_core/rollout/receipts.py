"""The ledger: a keyed chain of receipts that only the harness can write."""

from __future__ import annotations

from collections.abc import Sequence

from bat_core.model.message import ToolCall
from bat_core.model.receipt import Receipt
from bat_core.model.sandbox import ExecResult
from bat_core.verify.chain import sign

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
