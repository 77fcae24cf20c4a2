"""Checks of the infer stage."""

from __future__ import annotations

import re

from bat_core.verify.toolbox.command import Allowed, options_of, truncated
from bat_core.verify.toolbox.degenerate import alike_share, copied, flat, identical
from bat_core.verify.toolbox.finding import PARTIAL, Finding
from bat_core.verify.toolbox.ledger import Event, writers
from bat_core.verify.toolbox.words import visible
from drill.case import ANSWERS, Case, foreground, grid_of

SUMMARY = "summary.md"
INFER = Allowed(("python", "infer.py"), {"--case": ("*",)}, least=("--case",))
FOLD = Allowed(("python", "infer.py"), {"--fold": ()}, least=("--fold",))
SHOWN = re.compile(r"^(\S+): fg=(\d+) -> (\S+)$", re.M)
COUNT = re.compile(r"^\W*(\w+)\W+(\d+) foreground\b", re.M)
NEAR = 0.9
ALIKE = 0.95
"""Share of equal cells from which on predictions of all cases count as one."""


def complete(case: Case) -> Finding:
    """Every requested case has a prediction that is not empty."""
    made = case.written("out")
    missing = [name for name in case.cases if not made.get(name, b"").strip()]
    return Finding(not missing, f"missing {missing[:4]}" if missing else "")


def varied(case: Case) -> Finding:
    """No prediction is constant, and no two are the same."""
    made = {name: data for name, data in case.written("out").items() if data.strip()}
    dull = [name for name, data in made.items() if flat("".join(data.decode("utf-8", "replace").split()))]
    inputs = {name: case.given.get(f"inputs/img_{name}.txt") for name in made}
    same = identical({name: b"".join(data.split()) for name, data in made.items()}, inputs)
    cells = ["".join(data.decode("utf-8", "replace").split()) for data in made.values()]
    alike = len(cells) > 2 and all(alike_share(cells[0], other) >= ALIKE for other in cells[1:])
    fine = bool(made) and not dull and not same and not alike
    return Finding(fine, "" if fine else f"constant {dull[:3]}, the same {same[:3]}" if made else "no predictions")


def original(case: Case) -> Finding:
    """No prediction is a copy of an input or of a reference."""
    made = {name: data for name, data in case.written("out").items() if data.strip()}
    if not made:
        return Finding(False, "nothing to compare")
    again = copied(made, case.given)
    if again:
        return Finding(False, f"{again[0][0]} is {again[0][1]}", True, 0.0)
    for name, data in made.items():
        why = _foreign(case, name, data)
        if why:
            return Finding(False, why, True, 0.0)
    return Finding(True)


def shaped(case: Case) -> Finding:
    """Each prediction has the rows and columns of its input."""
    made = case.written("out")
    odd = [name for name, data in made.items() if not _same_shape(case, name, data)]
    return Finding(bool(made) and not odd, f"odd shapes {odd[:4]}" if made else "no predictions")


def ran(case: Case) -> Finding:
    """The log shows the inference script running for each case."""
    done: dict[str, Event] = {}
    for event, options in case.calls(INFER):
        if truncated(event) or re.search(rf"^{re.escape(options['--case'])}\b", event.stdout, re.M):
            done[options["--case"]] = event
    for event, _ in case.calls(FOLD):
        done |= {name: event for name in case.cases if re.search(rf"^{re.escape(name)}\b", event.stdout, re.M)}
    missing = [name for name in case.cases if name not in done]
    if missing:
        return Finding(False, f"no run for {missing[:4]}")
    found = Finding(True)
    for name, event in done.items():
        why = _doubt(case, name, event) if name in case.cases else ""
        if why:
            found = found.lowered(f"run for {name}", PARTIAL, why)
    return found


def described(case: Case) -> Finding:
    """The summary gives the right count for every prediction, and for nothing else."""
    told = COUNT.findall(visible(case.text(SUMMARY)))
    made = {name: foreground(grid_of(data)) for name, data in case.written("out").items()}
    counts = {name: int(count) for name, count in told}
    wrong = sorted(name for name in {*made, *counts} if made.get(name) is None or counts.get(name) != made[name])
    fine = bool(made) and not wrong and len(told) == len(counts)
    return Finding(fine, "" if fine else f"wrong about {wrong[:4]}", bool(told), 1.0 if fine else 0.0)


def _foreign(case: Case, name: str, data: bytes) -> str:
    """Return why a prediction counts as taken from elsewhere, empty if it does not."""
    path = f"out/pred_{name}.txt"
    if path in case.evidence.odd:
        return f"{path} is a link"
    image = "".join(grid_of(case.given.get(f"inputs/img_{name}.txt")))
    cells = "".join(data.decode("utf-8", "replace").split())
    if not set(cells) <= {"0", "1"} and alike_share(cells, image) >= NEAR:
        return f"{path} is nearly the input"
    event = case.writer(path)
    if event is None:
        return f"no call wrote {path}"
    script = case.script_of(event)
    if not script:
        return f"{path} was not written by a script"
    ran = [one for one in writers(case.events, path) if options_of(one.code, INFER) or options_of(one.code, FOLD) == {}]
    if ran and event not in ran:
        return f"{script} replaced what inference had written to {path}"
    return _reaches(case, script)


def _reaches(case: Case, script: str) -> str:
    """Return whether a script of the rollout's own is seen to take answers from elsewhere."""
    taken = any(
        ANSWERS.search(text) or re.search(r"\bref_|copy|symlink|shutil", text) for text in case.sources_of(script)
    )
    return f"{script} takes what it writes from elsewhere" if taken else ""


def _same_shape(case: Case, name: str, data: bytes) -> bool:
    wanted = grid_of(case.given.get(f"inputs/img_{name}.txt"))
    grid = grid_of(data)
    return bool(wanted) and list(map(len, grid)) == list(map(len, wanted))


def _doubt(case: Case, name: str, event: Event) -> str:
    """Return why a run is not full evidence of the prediction that is there, empty if it is."""
    path = f"out/pred_{name}.txt"
    if truncated(event):
        return "its output is cut"
    if path in case.evidence.odd or case.writer(path) != event:
        return "its output was replaced afterwards"
    shown = next((int(count) for one, count, _ in SHOWN.findall(event.stdout) if one == name), None)
    count = foreground(grid_of(case.made.get(path)))
    return "it printed another count" if shown is not None and shown != count else ""


CHECKS = {"I1": complete, "I2": varied, "I3": original, "I4": shaped, "I5": ran, "I6": described}
