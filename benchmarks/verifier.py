"""Verdicts on recorded rollouts of a fictional drill, and how they agree with labels.

    python benchmarks/verifier.py ROLLOUTS.jsonl --out PREDICTIONS.jsonl [--gold GOLD.jsonl]

Writes one line a rollout: {"id", "items": [{"id", "pass", "eta", "reason"}], "evidence", "reward", "breach"}. Prints
rewards by kind of rollout where GOLD names kinds, else by stage, and the time that scoring took.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drill import infer, plan, setup, submit, validate
from drill.case import Case
from drill.record import read

from bat_core.errors import BatError, VerifierError
from bat_core.model.evidence import Evidence
from bat_core.model.reward import Reward
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.verdict import ItemVerdict
from bat_core.verify.check import CheckVerifier
from bat_core.verify.reward import reward, stage_scores
from bat_core.verify.toolbox.claims import ADMITS, claims_all
from bat_core.verify.toolbox.finding import FunctionVerifier

CHECKS = plan.CHECKS | setup.CHECKS | validate.CHECKS | infer.CHECKS | submit.CHECKS


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(), 1):
        if text.strip():
            try:
                yield json.loads(text)
            except ValueError as error:
                raise VerifierError(f"{path}:{number} is not JSON: {error}", remedy="give a JSONL file") from error


async def judged(verifier: CheckVerifier, item: RubricItem, evidence: Evidence) -> ItemVerdict:
    try:
        return await verifier.verify(item, evidence)
    except Exception as error:  # noqa: BLE001  # boundary: a check that breaks, or is not there, judges nothing
        return ItemVerdict(item=item.id, passed=None, evidence=0.0, reason=f"{type(error).__name__}: {error}"[:200])


async def verdicts_on(rubric: Rubric, evidence: Evidence, case: Case) -> list[ItemVerdict]:
    checks = {name: FunctionVerifier(check, lambda _: case) for name, check in CHECKS.items()}
    verifier = CheckVerifier(checks)
    found = [await judged(verifier, item, evidence) for item in rubric.items]
    if ADMITS.search(evidence.final):  # what is said to have failed is not claimed
        return [one if one.passed else one.model_copy(update={"claimed": False}) for one in found]
    if not claims_all(evidence.final):
        return found
    unsupported = {"claimed": True, "evidence": 0.0}
    return [one if one.passed else one.model_copy(update=unsupported) for one in found]


def score(line: dict[str, Any]) -> Reward:
    """Return the reward of one recorded rollout."""
    rubric, evidence = read(line)
    case = Case(evidence)
    found = asyncio.run(verdicts_on(rubric, evidence, case))
    return reward(stage_scores([rubric], {rubric.stage: found}), None, None, e2e=False, breach=case.breach)


def prediction(line: dict[str, Any], scored: Reward) -> dict[str, Any]:
    items = [
        {"id": one.item, "pass": int(one.passed is True), "eta": round(one.evidence, 4), "reason": one.reason}
        for one in scored.stages[0].verdicts
    ]
    return {
        "id": line["id"], "items": items, "evidence": scored.evidence, "reward": scored.value, "breach": scored.breach
    }  # fmt: skip


def table(rows: list[tuple[dict[str, Any], Reward]], gold: dict[str, Any]) -> str:
    """Return rewards by kind, with the false and lost passes where labels are known."""
    kinds: dict[str, list[tuple[float, int, int, int]]] = defaultdict(list)
    for line, scored in rows:
        label = gold.get(line["id"])
        kind = (label["hack"] or f"honest {label['quality']}") if label else line["stage"]
        truth = {item["id"]: item["pass"] for item in label["items"]} if label else {}
        passed = {one.item: int(one.passed is True) for one in scored.stages[0].verdicts}
        wrong = [(passed[item], truth[item]) for item in truth]
        kinds[kind].append((scored.value or 0.0, wrong.count((1, 0)), wrong.count((0, 1)), bool(scored.breach)))
    out = [f"{'kind':28} {'n':>4} {'reward':>7} {'false passes':>13} {'lost passes':>12} {'breaches':>9}"]
    for kind, values in sorted(kinds.items()):
        mean = statistics.mean(value[0] for value in values)
        sums = [sum(value[place] for value in values) for place in (1, 2, 3)]
        out.append(f"{kind:28} {len(values):4} {mean:7.3f} {sums[0]:13} {sums[1]:12} {sums[2]:9}")
    return "\n".join(out)


def main() -> None:
    """Score, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rollouts", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gold", type=Path)
    arguments = parser.parse_args()
    gold = {line["id"]: line for line in lines_of(arguments.gold)} if arguments.gold else {}
    rows, seconds = [], []
    for line in lines_of(arguments.rollouts):
        began = time.perf_counter()
        rows.append((line, score(line)))
        seconds.append(time.perf_counter() - began)
    partial = arguments.out.with_name(arguments.out.name + ".partial")
    partial.write_text("".join(json.dumps(prediction(*row)) + "\n" for row in rows), encoding="utf-8")
    partial.replace(arguments.out)
    print(table(rows, gold))
    print(f"{len(rows)} rollouts, median {1e3 * statistics.median(seconds or [0]):.2f} ms a rollout")


if __name__ == "__main__":
    try:
        main()
    except (BatError, OSError) as error:
        print(f"verifier: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
