from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.leakage.client import BUILT_IN_RULES
from bat_core.leakage.loading import load
from bat_core.leakage.panel import Panel
from bat_core.model.leakage import Checked, HeldoutItem

# Fictional throughout: (item id, task, kind, text).
ITEMS = [
    ("t1-id", "t1", "identifier", "QRX-7731-OBOE-58"),
    ("t1-uuid", "t1", "identifier", "6f0c2b9e-51d4-4a77-9a30-c81be27d0f45"),
    ("t1-commit", "t1", "identifier", "9b1e4c7a2f60d8835ce1f7049ab3d26e5f80c417"),
    ("t1-path", "t1", "path", "/srv/vault/kestrel_lagoon_418/ref/outline_kestrel_lagoon_418.nii.gz"),
    (
        "t1-text",
        "t1",
        "text",
        "Trace the rim of the copper basin on every second frame, then report its depth in furlongs to the harbour "
        "office, and leave the northern quay untouched because the dredger has marked it for next spring.",
    ),
    ("t1-answer", "t1", "answer", "rim depth of the copper basin: 0.8731"),
    (
        "t1-trace",
        "t1",
        "trace",
        "$ basinctl scan --gain 417 --probe 12,88,5 --keep rim\n"
        "[basinctl] settled after 23 sweeps, residue 0.0417, 5521 cells kept of 90210\n"
        "note: the rim looks ragged on frame 61, so the cut goes down to 0.312 before the next pass",
    ),
    ("secret", "all", "secret", "QUARRYBENCH CANARY 2d1a77c0-9e4b-4f13-8a66-0b5ce9d4f721"),
    ("t2-id", "t2", "identifier", "QRX-1904-LYRE-02"),
    ("t2-answer", "t2", "answer", "span of the granite arch: 41.7"),
    ("weak-id", "t2", "identifier", "case-12"),
    ("weak-answer", "t2", "answer", "0.5512"),
    ("weak-path", "t2", "path", "out/mask.nii.gz"),
    ("weak-text", "t2", "text", "Report the result."),
]


@pytest.fixture(scope="session")
def heldout() -> dict[str, HeldoutItem]:
    return {item[0]: HeldoutItem(item_id=item[0], task=item[1], kind=item[2], text=item[3]) for item in ITEMS}


@pytest.fixture(scope="session")
def panel(heldout: dict[str, HeldoutItem]) -> Panel:
    return Panel([load(spec)() for spec in BUILT_IN_RULES], list(heldout.values()))


@pytest.fixture(scope="session")
def check(panel: Panel) -> Callable[[Any], Checked]:
    return lambda value: panel.check("s", value)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment in which the checker can import `quarry_source`, with a source and some ill-behaved rules."""
    folder: Path = tmp_path_factory.mktemp("source")
    rows = repr(ITEMS)
    (folder / "quarry_source.py").write_text(
        textwrap.dedent(
            """
            import os, time
            from bat_core.hooks.leakage_rule import LeakageRule
            from bat_core.model.leakage import HeldoutItem, LeakageFinding

            def items(count=None):
                print("stray output on stdout")
                return [HeldoutItem(item_id=a, task=b, kind=c, text=d) for a, b, c, d in ROWS[:count]]

            def wrong():
                return ["text"]

            def broken():
                raise ValueError("QRX-7731-OBOE-58 is private")

            class _Rule(LeakageRule):
                name = "odd"
                def prepare(self, heldout):
                    self.heldout = heldout
                    return len(heldout)

            class Raising(_Rule):
                def check(self, sample):
                    raise RuntimeError("QRX-7731-OBOE-58")

            class Talkative(_Rule):
                def check(self, sample):
                    return [LeakageFinding(rule="odd", reason="it holds " + self.heldout[0].text)]

            class Dying(_Rule):
                def check(self, sample):
                    os._exit(3)

            class Babbling(_Rule):
                def check(self, sample):
                    for fd in range(3, 20):
                        try:
                            os.write(fd, b"\\xff" * 64)
                        except OSError:
                            pass
                    time.sleep(30)

            class Sleeping(_Rule):
                def check(self, sample):
                    time.sleep(30)

            class Printing(_Rule):
                def check(self, sample):
                    print("noise")
                    os.write(1, b"more noise")
                    return []
            """
        )
        + f"\nROWS = {rows}\n"
    )
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}
