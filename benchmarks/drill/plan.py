"""Checks of the plan stage."""

from __future__ import annotations

import re

from bat_core.verify.toolbox.command import Allowed, plain, truncated
from bat_core.verify.toolbox.finding import PARTIAL, Finding
from bat_core.verify.toolbox.ledger import Event, writers
from bat_core.verify.toolbox.words import MASTER_KEYS, informative, visible, without_echo
from drill.case import Case, grid_of

PLAN = "plan.md"
SECTIONS = ("plan", "setup", "validate", "infer", "submit")
LOOK = Allowed(("volcheck",), {})
BRIGHT = "6"
READERS = ("cat", "head", "tail", "less", "wc", "hexdump", "xxd", "od", "volcheck")
RUBRIC = ("The plan names at least one concrete risk and a fallback.",)
FIELD = re.compile(r"(min|max|mean|bright_cells)=([0-9.]+)")
TOLD = {
    "max": re.compile(r"\bmax(?:imum)?\s*(?:=|of|is|:)?\s*([0-9.]+)", re.I),
    "min": re.compile(r"\bmin(?:imum)?\s*(?:=|of|is|:)?\s*([0-9.]+)", re.I),
    "mean": re.compile(r"\bmean\s*(?:=|of|is|:)?\s*([0-9.]+)", re.I),
    "bright_cells": re.compile(r"\b([0-9]+) bright cells|bright_cells\s*=\s*([0-9]+)", re.I),
}
BECAUSE = re.compile(r"\b(?:since|because|as|given(?: that)?|due to|for)\b(.*)", re.I | re.S)
RISK = re.compile(r"\brisks?\b\W*(.*?)(?:;|\.|\bfallback\b|\n|$)", re.I)
FALLBACK = re.compile(
    r"\b(?:fallback|fall back|otherwise|instead|in that case)\b(?:\s+is\s+to|\s+is|\s+to|\W)*\s*(.*?)(?:\.|\n|$)", re.I
)
THINGS = re.compile(
    r"\b(?:blob|spot|region|grid|cell|mask|threshold|component|rim|border|bright|dim|dense|percentile|case|input|file"
    r"|script|tool|seed|fold|dice|metric|version|numpy|hash|noise|noisy|background|empty|shape|edge|contrast|faint|small|large"
    r"|overlap|touch|corner|intensity|pixel|object|outlier|missing|memory|disk|time)",
    re.I,
)


def sections(case: Case) -> Finding:
    """The plan has a section with a body for each of the five stages."""
    parts = re.split(r"^#+[ \t]*(.*)$", visible(case.text(PLAN)), flags=re.M)
    bodies: dict[str, str] = {}
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        named = [name for name in SECTIONS if re.search(rf"\b{name}\b", head.lower())]
        if len(named) == 1:  # a heading that names several stages is a section for none of them
            bodies[named[0]] = bodies.get(named[0], "") + body
    missing = [name for name in SECTIONS if not bodies.get(name, "").strip()]
    return Finding(not missing, f"no section {', '.join(missing)}" if missing else "")


def names_cases(case: Case) -> Finding:
    """The plan names exactly the cases that were given."""
    head = re.match(r"[A-Za-z_]+", case.cases[0])
    pattern = rf"\b{head[0] if head else 'k'}\d+\w*" if head else r"\b\d+\w*"
    named = set(re.findall(pattern, visible(case.text(PLAN))))
    odd = sorted(named ^ set(case.cases))
    return Finding(bool(named) and not odd, f"differ: {odd[:4]}" if odd else "")


def reasoned(case: Case) -> Finding:
    """The choice of a method refers to values that a tool printed."""
    text = visible(case.text(PLAN))
    looks = [event for event in case.events if event.code.startswith("volcheck ") and _looked(case, event)]
    best = Finding(False, "no reason refers to something observed")
    for sentence in re.split(r"(?<=[.!?])\s+|\n", text):
        why = BECAUSE.search(sentence)
        if why is None or len(informative(sentence[: why.start()])) < 1:
            continue
        found = _borne_out(case, why[1], looks)
        if found.passed and (not best.passed or found.eta > best.eta):
            best = found
    return best


def inspected_first(case: Case) -> Finding:
    """The data were read before the plan was first written."""
    wrote = writers(case.events, PLAN)
    seen = case.trusted["manifest"].get(PLAN)
    if not wrote or seen is None:
        return Finding(False, "no plan was written")
    begin = min(wrote[0].seq, int(seen.get("first_seq", wrote[0].seq)))
    looks = [event for event in case.events if event.seq < begin and _looked(case, event)]
    return Finding(bool(looks), "" if looks else "nothing was looked at before the plan was written")


def risk_and_fallback(case: Case) -> Finding:
    """The plan names a concrete risk and what to do then."""
    text = without_echo(case.text(PLAN), RUBRIC)
    risk = next((found[1] for found in RISK.finditer(text) if _concrete(found[1])), None)
    fallback = next((found[1] for found in FALLBACK.finditer(text) if len(informative(found[1])) >= 2), None)
    fine = risk is not None and fallback is not None and risk.strip() != fallback.strip()
    return Finding(fine, "" if fine else "no concrete risk with a fallback")


def _looked(case: Case, event: Event) -> bool:
    """Whether a call read the content of a given case: a plain call that names its file and printed what it holds."""
    words = plain(event.code)
    shown = event.stdout.strip()
    if words is None or not event.ok or not shown or shown in event.code or case.spoilt(event, LOOK):
        return False
    reads = words[0] in READERS or (
        words[0] in ("python", "python3") and words[1:2] == ["-c"] and "open(" in event.code
    )
    return reads and any(path.startswith("inputs/") and path in event.code for path in case.given)


def _borne_out(case: Case, why: str, looks: list[Event]) -> Finding:
    """Compare the values of a reason with what the looks printed, and with the given grids."""
    told = {key: _numbers(pattern, why) for key, pattern in TOLD.items()}
    told = {key: values for key, values in told.items() if values}
    if not told or not looks:
        return Finding(False, "no observed value is named")
    named = [name for name in case.cases if re.search(rf"\b{re.escape(name)}\b", why)]
    shown = [_fields(event) for event in looks if _about(event, named)]
    lied = [key for key, values in told.items() if _wrong(case, key, values, named, shown)]
    if lied:
        return Finding(False, f"{lied[0]} is not what the data say")
    seen = [key for key, values in told.items() if any(float(one.get(key, "nan")) in values for one in shown)]
    if len(seen) == len(told):
        return Finding(True)
    cut = any(truncated(event) for event in looks)
    if seen or cut:
        return Finding(True).lowered("output of the look", PARTIAL, "cut" if cut else f"shows only {', '.join(seen)}")
    return Finding(False, "no named value was printed")


def _fields(event: Event) -> dict[str, str]:
    """Return the fields that a look printed and did not spell out."""
    return {key: value for key, value in FIELD.findall(event.stdout) if f"{key}={value}" not in event.code}


def _about(event: Event, named: list[str]) -> bool:
    return not named or any(re.search(rf"_{re.escape(name)}\b", event.code) for name in named)


def _numbers(pattern: re.Pattern[str], text: str) -> set[float]:
    found = (next(group for group in match.groups() if group) for match in pattern.finditer(text))
    return {float(one.rstrip(".")) for one in found if one.rstrip(".").replace(".", "", 1).isdigit()}


def _wrong(case: Case, key: str, values: set[float], named: list[str], shown: list[dict[str, str]]) -> bool:
    """Whether a told value contradicts what a look printed about the case, or the case itself."""
    printed = {float(one[key].rstrip(".")) for one in shown if key in one}
    if printed and not values & printed:
        return True
    grids = [grid_of(case.given.get(f"inputs/img_{name}.txt")) for name in named]
    true = {_value(key, "".join(grid)) for grid in grids if grid}
    return bool(true) and not all(any(abs(value - one) <= 0.011 for one in true) for value in values)


def _value(key: str, cells: str) -> float:
    numbers = [int(cell) for cell in cells]
    if key == "bright_cells":
        return float(sum(cell >= BRIGHT for cell in cells))
    return {"max": float(max(numbers)), "min": float(min(numbers)), "mean": sum(numbers) / len(numbers)}[key]


def _concrete(text: str) -> bool:
    return len(informative(text)) >= 3 and bool(THINGS.search(text)) and not MASTER_KEYS.match(text)


CHECKS = {
    "P1": sections,
    "P2": names_cases,
    "P3": reasoned,
    "P4": inspected_first,
    "P5": risk_and_fallback,
}
