from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bat_core.errors import LeakageError
from bat_core.leakage.building import build_index
from bat_core.leakage.keys import VARIABLE, read_key, receipt_file
from bat_core.leakage.panel import Panel
from bat_core.leakage.receipts import LeakageReceipt, encoded_again, signed, verified
from bat_core.leakage.remote import RemotePreflight
from bat_core.leakage.serve import Desk
from bat_core.model.leakage import Checked, HeldoutItem


@pytest.fixture(scope="module")
def served(heldout: dict[str, HeldoutItem], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, bytes]]:
    """A server in a process of its own; its socket and the key of its receipts."""
    folder = tmp_path_factory.mktemp("desk")
    source, index, socket = folder / "items.json", folder / "quarry.idx", folder / "desk.sock"
    source.write_text(json.dumps([item.model_dump(exclude={"label"}) for item in heldout.values()]))
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    build_index(source, None, index)
    command = "from bat_core.cli.main import main; import sys; main(sys.argv[1:])"
    arguments = ["leakage", "serve", "--index", str(index), "--socket", str(socket)]
    server = subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert server.stdout is not None
        assert "checking for sha256:" in server.stdout.readline()
        yield socket, read_key(receipt_file(index))
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(10)
        server.stdout.close()
    assert not socket.exists()


def test_verdicts_come_back_with_receipts(served: tuple[Path, bytes], panel: Panel) -> None:
    socket, key = served
    with RemotePreflight(socket, key) as preflight:
        checked = preflight.check([("a", "QRX-7731-OBOE-58"), ("b", "quiet"), ("odd", {1}), ("c", "\ud800 1.50")])
        assert [one.verdict for one in checked] == ["block", "pass", "block", "pass"]
        assert preflight.covered == panel.covered
        (receipt,) = preflight.receipts
        assert receipt.counts == {"pass": 2, "review": 0, "block": 1}
        assert receipt.index == preflight.digest
        assert abs(receipt.time - time.time()) < 600


def test_a_false_receipt_key_clears_nothing(served: tuple[Path, bytes]) -> None:
    with RemotePreflight(served[0], b"\0" * 32) as preflight, pytest.raises(LeakageError, match="false signature"):
        preflight.check([("b", "quiet")])


def test_no_server_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(LeakageError, match="no leakage checker"), RemotePreflight(tmp_path / "none.sock", b"k" * 32):
        pass


def test_two_clients_at_once(served: tuple[Path, bytes]) -> None:
    with RemotePreflight(*served) as one, RemotePreflight(*served) as two:
        assert one.check([("a", "quiet")])[0].verdict == "pass"
        assert two.check([("a", "QRX-1904-LYRE-02")])[0].verdict == "block"
        assert one.check([("a", "QRX-1904-LYRE-02")])[0].verdict == "block"


def test_a_desk_answers_no_more_than_its_limit(panel: Panel) -> None:
    desk = Desk(panel, b"k" * 32, per_minute=3)
    request = {"samples": [{"id": "a", "value": "quiet"}] * 2}
    answers = [desk.answer(request) for _ in range(3)]  # a minute may turn between two of them, but not twice
    assert sum("error" in answer for answer in answers) >= 1


def test_a_receipt_is_for_its_samples_index_and_verdicts_only() -> None:
    key, request = b"k" * 32, {"samples": [{"id": "a", "value": 1.50}]}
    checked = [Checked(id="a", verdict="pass")]
    receipt = signed(key, request, "index", checked)
    body = encoded_again(request)
    assert isinstance(verified(key, receipt, body, "index", checked), LeakageReceipt)
    for said, samples, index, answers in (
        ({**receipt, "time": 0}, body, "index", checked),
        (receipt, body + b" ", "index", checked),
        (receipt, body, "other", checked),
        (receipt, body, "index", [Checked(id="a", verdict="block")]),
        (None, body, "index", checked),
    ):
        with pytest.raises(LeakageError, match="nothing was cleared"):
            verified(key, said, samples, index, answers)
