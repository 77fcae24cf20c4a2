from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from bat_core.model.message import ToolCall
from bat_core.model.receipt import Receipt
from bat_core.model.sandbox import ExecResult
from bat_core.rollout.receipts import TAIL, Ledger
from bat_core.verify.chain import verify_chain

KEY = b"k" * 32


def chain(count: int = 3, key: bytes = KEY, before: tuple[Receipt, ...] = ()) -> list[Receipt]:
    ledger = Ledger(key, "bubblewrap", before)
    for number in range(count):
        call = ToolCall(name="execute_code", arguments={"language": "python", "code": f"print({number})"})
        ledger.add(call, ExecResult(status="exited", rc=0, stdout=f"{number}\n".encode(), ws_before="a", ws_after="b"))
    return ledger.receipts


def test_a_chain_holds_and_goes_on_over_a_history() -> None:
    history = tuple(chain(2))
    more = chain(2, before=history)
    assert [receipt.seq for receipt in more] == [2, 3] and more[0].prev == history[-1].mac
    assert verify_chain(KEY, [*history, *more]) and verify_chain(KEY, [])
    assert not verify_chain(KEY, more), "it doesn't begin at the beginning"


def test_the_mac_is_the_hmac_over_all_other_fields() -> None:
    (receipt,) = chain(1)
    body = receipt.model_dump(mode="json")
    del body["mac"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert receipt.mac == hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()


@pytest.mark.parametrize("field", sorted(Receipt.model_fields))
@pytest.mark.parametrize("where", [0, 1, 2])
def test_tampering_with_any_field_of_any_receipt_shows(field: str, where: int) -> None:
    receipts = chain()
    old = getattr(receipts[where], field)
    other = {"seq": 9, "rc": 1, "status": "timeout"}.get(field, f"{old}x")
    receipts[where] = receipts[where].model_copy(update={field: other})
    assert not verify_chain(KEY, receipts)


def test_leaving_out_swapping_or_forging_shows() -> None:
    first, second, third = chain()
    assert not verify_chain(KEY, [first, third])
    assert not verify_chain(KEY, [second, first, third])
    assert not verify_chain(KEY, [first, first, second])
    assert not verify_chain(b"other" * 6, [first, second, third])
    assert not verify_chain(KEY, [first, second, chain(1, key=b"agent" * 6, before=(first, second))[0]])


def test_a_receipt_keeps_the_tail_of_the_streams_and_odd_arguments_do_no_harm() -> None:
    ledger = Ledger(KEY, "p")
    result = ExecResult(status="timeout", rc=None, stdout=b"a" * TAIL + b"end\xff", stderr=b"")
    receipt = ledger.add(ToolCall(name="t", arguments={"code": ["x"], "language": None}), result)
    assert len(receipt.stdout) == TAIL and receipt.stdout.endswith("end\ufffd")
    assert (receipt.language, receipt.code, receipt.rc, receipt.status) == ("None", "['x']", None, "timeout")
    assert verify_chain(KEY, ledger.receipts)
