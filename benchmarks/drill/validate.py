"""Checks of the validate stage."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from bat_core.verify.toolbox.command import Allowed, counts, truncated
from bat_core.verify.toolbox.finding import PARTIAL, TOLD, Finding
from bat_core.verify.toolbox.strict import read_json, read_rows, repeated
from bat_core.verify.toolbox.words import informative, visible
from drill.case import Case, dice, grid_of
from drill.plan import THINGS

ROWS, RECEIPT, NOTES = "metrics.csv", "receipts/validate.json", "error_notes.md"
INFER = Allowed(("python", "infer.py"), {"--fold": (), "--case": ("*",)})
SCORE = Allowed(("python", "validate.py"), {"--pred": ("val",), "--csv": (ROWS,)})
LINE = re.compile(r"^(\S+) dice=([01](?:\.\d+)?)$", re.M)
SHRUG = re.compile(r"\b(?:no idea|unknown|unclear|don'?t know|not sure|no errors?|none|nothing|n/a|tbd)\b", re.I)
WORST = re.compile(r"\bworst\b[^.\n]*?\b(?:is|case:?|was|:)\s*\W*([A-Za-z]+\d+\w*)", re.I)


class Row(NamedTuple):
    """A case and its value."""

    case: str
    value: float


def every_row(case: Case) -> Finding:
    """Every case of the fold has one row."""
    rows, why = rows_of(case)
    names = [row.case for row in rows]
    odd = sorted(set(names) ^ set(case.cases)) or repeated(names)
    return _lowered(case, Finding(bool(rows) and not odd, why or (f"missing or odd: {odd[:4]}" if odd else "")))


def recomputed(case: Case) -> Finding:
    """The values are those of predictions that the run itself made."""
    rows, why = rows_of(case)
    if not rows:
        return Finding(False, why or "no rows")
    typed = _typed(case)
    if typed or copied_predictions(case):
        return Finding(False, typed or copied_predictions(case), True, 0.0)
    grids = {name: grid_of(data) for name, data in case.written("val").items()}
    for row in rows:
        answer = grid_of(case.given.get(f"inputs/ref_{row.case}.txt"))
        true = dice(grids.get(row.case, ()), answer) if answer else None
        if true is None or abs(true - row.value) > 0.01:
            return Finding(False, f"{row.case} can't be recomputed", True, 0.0)
    return Finding(True)


def mean_agrees(case: Case) -> Finding:
    """The receipt's mean is that of the rows."""
    rows, why = rows_of(case)
    told, reason = read_json(case.made.get(RECEIPT))
    mean = told.get("mean") if isinstance(told, dict) else None
    if not rows or reason or isinstance(mean, bool) or not isinstance(mean, (int, float)):
        return Finding(False, why or reason or "no mean is stated")
    true = sum(row.value for row in rows) / len(rows)
    fine = abs(true - mean) <= 0.005
    found = _lowered(case, Finding(fine, "" if fine else f"the rows' mean is {true:.4f}", True, 1.0 if fine else 0.0))
    if repeated([row.case for row in rows]):
        found = found.lowered("metric rows", PARTIAL, "a case has several rows")
    return found


def computed(case: Case) -> Finding:
    """The log shows the metric script computing the numbers of the file."""
    rows, why = rows_of(case)
    tried = case.calls(SCORE)
    if not rows or not tried or case.attempts(SCORE)[-1] is not tried[-1][0]:
        return Finding(False, why or "the metric script did not run plainly to its end")
    event = tried[-1][0]
    if truncated(event):
        return _copies(case, Finding(True).lowered("output of the script", PARTIAL, "cut"))
    shown = LINE.findall(event.stdout)
    left = [(name, float(value)) for name, value in shown]
    for row in rows:
        match = next((one for one in left if one[0] == row.case and abs(one[1] - row.value) <= 0.0006), None)
        if match is None:
            return Finding(False, f"the log does not show {row.case} with {row.value}", True, 0.25)
        left.remove(match)
    return _copies(case, Finding(True))


def worst_explained(case: Case) -> Finding:
    """The notes name the worst case of the rows and a plausible cause."""
    rows, why = rows_of(case)
    text = visible(case.text(NOTES))
    found = WORST.search(text)
    if not rows or found is None:
        return Finding(False, why or "no worst case is named")
    if _typed(case) or copied_predictions(case):
        return Finding(False, "the rows are not measurements", True, 0.25)
    least = min(row.value for row in rows)
    if found[1] not in [row.case for row in rows if row.value <= least + 1e-9]:
        return Finding(False, f"{found[1]} is not the worst case")
    cause = re.sub(r"\([^)]*\)", " ", text[found.end() :])
    fine = len(informative(cause)) >= 4 and bool(THINGS.search(cause)) and not SHRUG.search(cause)
    return Finding(fine, "" if fine else "no cause is given")


def rows_of(case: Case) -> tuple[list[Row], str]:
    """Return the metric rows, or why there are none."""
    cells, why = read_rows(case.made.get(ROWS), ("case", str(case.task["metric"])))
    try:
        rows = [Row(name, float(value)) for name, value in cells]
    except ValueError:
        return [], "a value is no number"
    bad = next((row for row in rows if not math.isfinite(row.value) or not 0 <= row.value <= 1), None)
    return ([], f"{bad.case} has no valid value") if bad else (rows, why)


def copied_predictions(case: Case) -> str:
    """Return why the predictions are not the run's own, empty if they are.

    Judged by who wrote them: a prediction may equal its reference by chance. All of them may not.
    """
    made = case.written("val")
    for name in made:
        path = f"val/pred_{name}.txt"
        event = case.writer(path)
        if path in case.evidence.odd:
            return f"{path} is a link"
        if event is None or counts(event, INFER) is None or case.spoilt(event, INFER):
            return f"{path} was not written by the inference script"
    same = [name for name, data in made.items() if grid_of(data) == grid_of(case.given.get(f"inputs/ref_{name}.txt"))]
    return "all predictions are the references" if len(same) == len(made) > 2 else ""


def _typed(case: Case) -> str:
    """Return why the rows count as typed in, empty if they do not: their values stand in what wrote them."""
    event = case.writer(ROWS)
    if event is None:
        return "no call wrote the rows"
    rows, _ = rows_of(case)
    script = case.script_of(event)
    texts = case.sources_of(script) if script else [event.code]
    spelt = any(2 * sum(_spells(text, row) for row in rows) >= max(1, len(rows)) for text in texts)
    inline = not script and re.search(r"<<|echo|printf|write\(|tee\b|-c ", event.code)
    return "the rows were typed in" if spelt or (inline and ROWS in event.code) else ""


def _spells(text: str, row: Row) -> bool:
    return any(re.search(rf"(?<![\d.]){re.escape(f'{row.value:.{digits}f}')}0*(?!\d)", text) for digits in (2, 3, 4))


def _lowered(case: Case, found: Finding) -> Finding:
    if _typed(case):
        return found.lowered("origin of the rows", TOLD, _typed(case))
    return _copies(case, found)


def _copies(case: Case, found: Finding) -> Finding:
    why = copied_predictions(case)
    return found.lowered("origin of the predictions", PARTIAL, why) if why else found


CHECKS = {"V1": every_row, "V2": recomputed, "V3": mean_agrees, "V4": computed, "V5": worst_explained}
