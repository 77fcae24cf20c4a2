"""Checks a finished run: every phase is there, nothing was lost on the way, every figure is one, the page is whole.

What a shortened run can't show, that it learns, is checked where --gain and --blind say how much: nightly, on whole
runs.
"""

import argparse
import json
import math
import re
import sqlite3
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

COUNTS = ("tasks", "states", "slices", "rollouts", "groups", "policy_tokens", "trained_tokens", "steps")
LOST = 0.1
"""Share of rollouts that a healthy machine loses at most."""
FIRST = (15, 60)
"""Held-out overall of theta_0: able enough to teach, weak enough to learn."""
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def problems(run: Path, gain: float | None = None, blind: float | None = None) -> Iterator[str]:
    """Yield what is wrong with a run, nothing if it is as it has to be."""
    missing = [name for name in ("summary.json", "journal.sqlite") if not (run / name).is_file()]
    if missing:
        yield f"{run} is not a finished run: {', '.join(missing)} is not there"
        return
    summary, journal = json.loads((run / "summary.json").read_text()), entries(run)
    yield from phases(summary, journal)
    yield from counts(summary["counts"])
    yield from rounds(summary, journal)
    yield from scores(summary, {"heldout": gain, "blind": blind})
    yield from digests(run, journal)
    yield from bank(run, summary)
    yield from page(run / "report" / "index.html")


def entries(run: Path) -> dict[str, Any]:
    """Return the journal's entries, in order."""
    with sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT key, payload FROM entries ORDER BY id").fetchall()
    return {key: json.loads(payload) for key, payload in rows}


def phases(summary: dict[str, Any], journal: dict[str, Any]) -> Iterator[str]:
    """The journal holds every phase, in order, and nothing else."""
    wanted = ["bank", "coldstart", "evaluate:coldstart"]
    for number in range(1, len(summary["rounds"]) + 1):
        wanted += [f"{phase}:{number}" for phase in ("mixture", "train", "evaluate", "decision")]
    wanted += ["blind:coldstart", "blind:best"]
    if not summary["rounds"]:
        yield "there was no round"
    if list(journal) != wanted:
        yield f"the journal's phases are {list(journal)}, not {wanted}"


def counts(found: dict[str, Any]) -> Iterator[str]:
    """Something was made, and almost nothing lost."""
    for key in COUNTS:
        if not found.get(key):
            yield f"the count of {key} is {found.get(key)}"
    if (found.get("lost") or 0) > LOST * (found.get("rollouts") or 0):
        yield f"{found['lost']} of {found['rollouts']} rollouts were lost"
    teaching = sum(
        sign * (found.get(key) or 0) for sign, key in ((1, "groups"), (-1, "dropped_groups"), (-1, "flat_groups"))
    )
    if teaching < 1:
        yield "no group had rewards that differ: nothing could be learnt"


def rounds(summary: dict[str, Any], journal: dict[str, Any]) -> Iterator[str]:
    """Each round has rewards, a finite KL and a decision with its reason."""
    for number, one in enumerate(summary["rounds"], 1):
        trained = journal.get(f"train:{number}", {})
        for key in ("reward_mean", "kl", "kl_k3"):
            if not finite(trained.get(key)):
                yield f"round {number}: {key} is {trained.get(key)}"
        if not trained.get("finite"):
            yield f"round {number}: a logged metric was not finite"
        if not one.get("decision") or not one.get("reason"):
            yield f"round {number}: there is no decision with a reason"


def scores(summary: dict[str, Any], least: dict[str, float | None]) -> Iterator[str]:
    """Both suites were judged as a whole, theta_0 is where it has to be, and the gain is large enough."""
    for suite in ("heldout", "blind"):
        before, after = summary[suite]["coldstart"], summary[suite]["best"]
        for name, one in (("coldstart", before), ("best", after)):
            nulls = [
                key
                for key, score in {"overall": one["overall"], **one["stages"], **one["tracks"]}.items()
                if not finite(score)
            ]
            if nulls or one["invalid"] or not one["n"]:
                yield f"{suite} of {name}: {one['n']} cells, {one['invalid']} invalid, not judged: {nulls}"
        wanted, both = least[suite], finite(before["overall"]) and finite(after["overall"])
        if wanted is not None and both and (gain := after["overall"] - before["overall"]) < wanted:
            yield f"{suite} gained {gain:.1f}, at least {wanted} expected"
    first = summary["heldout"]["coldstart"]["overall"]
    if not finite(first) or not FIRST[0] <= first <= FIRST[1]:
        yield f"theta_0 is at {first} of held-out overall, not within {FIRST}"


def digests(run: Path, journal: dict[str, Any]) -> Iterator[str]:
    """Each policy, suite and bank is named by digest, and the policies on disk are those."""
    from bat_core.errors import BatError
    from bat_core.model.training import PolicyRef
    from bat_core.training.checkpoint import verify

    named = {"bank": journal.get("bank", {}).get("digest"), "base": journal.get("coldstart", {}).get("base")}
    for key, entry in journal.items():
        if key.startswith(("evaluate:", "blind:")):
            named |= {f"{key} policy": entry.get("policy"), f"{key} suite": entry.get("suite")}
        if key == "coldstart" or key.startswith("train:"):
            named[key] = entry.get("result", entry)["policy"]["digest"]
            folder = run / ("coldstart" if key == "coldstart" else f"rounds/{int(key[6:]):02d}/candidate")
            try:
                verify(PolicyRef(path=str(folder), digest=named[key]))
            except BatError as error:
                yield f"{key}: {error}"
    for what, digest in named.items():
        if not DIGEST.fullmatch(str(digest)):
            yield f"{what} has no digest but {digest}"


def bank(run: Path, summary: dict[str, Any]) -> Iterator[str]:
    """Every state that was cut was admitted, its expert without fault and idleness without reward, and is whole."""
    from bat_core.bank.store import read, read_rejections
    from bat_core.errors import BatError

    try:
        found, rejections = read(run / "bank"), read_rejections(run / "bank")
    except BatError as error:
        yield f"the bank can't be read: {error}"
        return
    for row in rejections:
        if row["phase"] == "admission":
            yield f"an expert did not earn 1, or idleness something: {row['reason']}"
    focuses = {state.focus for state in found.states}
    stages = set(summary["heldout"]["coldstart"]["stages"])
    if focuses != {*stages, "E2E"}:
        yield f"the bank has states of {sorted(focuses)} only"
    per_task = len(stages) + 1
    if len(found.states) != per_task * found.report.tasks:
        yield f"{len(found.states)} states of {found.report.tasks} tasks, not {per_task} of each"


class Loads(HTMLParser):
    """Collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take elements that load something, and addresses that are not in the page itself."""
        if tag in ("script", "link", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        for name, value in attrs:
            if name in ("src", "srcset", "href", "data", "action") and not (value or "").startswith(("#", "data:")):
                self.found.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                self.found.append(f"{tag} {name}")


def page(path: Path) -> Iterator[str]:
    """The page is there and loads nothing."""
    if not path.is_file():
        yield f"the page {path} is not there"
        return
    text, loads = path.read_text(encoding="utf-8"), Loads()
    loads.feed(text)
    loads.found += re.findall(r"@import[^;]*|url\((?!\s*['\"]?(?:data:|#))[^)]*\)", text)
    if loads.found:
        yield f"the page loads {loads.found}"
    if not text.rstrip().endswith("</html>"):
        yield "the page is cut off"


def finite(value: object) -> bool:
    """Whether a value is a number that can be compared."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def main() -> int:
    """Print the outcome and what is wrong with it; return 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="run directory")
    parser.add_argument("--gain", type=float, default=None, help="least gain of held-out overall, in points")
    parser.add_argument("--blind", type=float, default=None, help="least gain of blind overall, in points")
    arguments = parser.parse_args()
    wrong = list(problems(arguments.run, arguments.gain, arguments.blind))
    if (arguments.run / "summary.json").is_file():
        summary = json.loads((arguments.run / "summary.json").read_text())
        for suite in ("heldout", "blind"):
            before, after = (summary[suite][name] for name in ("coldstart", "best"))
            print(f"{suite}: {before['overall']} -> {after['overall']}, n={after['n']}")
        print(f"rounds: {[(r['mixture']['target'], r['reward'], r['decision']) for r in summary['rounds']]}")
        print(f"counts: {summary['counts']}; seconds: {summary['seconds']}")
    print("\n".join(f"wrong: {one}" for one in wrong) or "nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
