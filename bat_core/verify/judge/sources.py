"""What a judge is shown: logs of the harness and new artifacts, as data under plain ids, made harmless."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bat_core.model.evidence import Evidence
from bat_core.verify.toolbox.finding import PARTIAL, RECOMPUTED
from bat_core.verify.toolbox.stale import fresh
from bat_core.verify.toolbox.words import visible

MOST = 24
"""Sources a judge is shown; the latest logs win."""
TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class Source:
    """One block of untrusted data.

    Attributes:
        id: `A1`, `L3`: file names are the agent's words and never shown.
        text: What is shown; offsets of quotes count in it.
        trust: How far a quote from it bears something out.
        code: The code of the call whose log this is: what it spells out itself is no observation.
        fact: What the harness knows about it.
    """

    id: str
    text: str
    trust: float = RECOMPUTED
    code: str = ""
    fact: str = ""


def sources_of(evidence: Evidence, longest: int) -> tuple[Source, ...]:
    """Return what the rollout left, artifacts first. The final message is a claim and is not among it."""
    logs = [receipt for receipt in evidence.receipts if receipt.stdout.strip()]
    made = [path for path in sorted(evidence.files) if fresh(evidence.start, evidence.files, path)]
    texts = [evidence.files[path] for path in made if not TEXT.search(evidence.files[path])]
    shown = [
        Source(f"A{n}", harmless(data.decode("utf-8", "replace"), longest), fact=f"a new file of {len(data)} bytes")
        for n, data in enumerate(texts, 1)
    ]
    shown = [source for source in shown if source.text.strip()][: MOST // 2]
    for number, receipt in enumerate(logs[-(MOST - len(shown)) :], 1):
        whole = receipt.status == "exited" and receipt.rc == 0
        text = harmless(receipt.stdout, longest)
        fact = f"output of call {receipt.seq}, {receipt.status}, exit code {receipt.rc}"
        shown.append(Source(f"L{number}", text, RECOMPUTED if whole else PARTIAL, receipt.code, fact))
    return tuple(shown)


def harmless(text: str, longest: int) -> str:
    """Return a text without hidden characters, tags and chat tokens, its middle left out if it is long."""
    plain = visible(text).replace("\r", "\n").replace("<", "\u2039").replace(">", "\u203a")
    plain = re.sub(r"```+|~~~+|\[/?INST\]|\{\{|\}\}", " ", plain)
    if len(plain) <= longest:
        return plain
    half = max(1, longest // 2)
    return f"{plain[:half]}\n[{len(plain) - 2 * half} characters left out]\n{plain[-half:]}"


def all_text(sources: Sequence[Source]) -> str:
    """Return the text of all sources."""
    return "\n".join(source.text for source in sources)
