"""S5: the validator, repairs of single outputs, and the submission."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from . import nifti
from .infer import FAILED, csv_of, rows_of
from .nifti import Unreadable
from .pipeline import PREDICTIONS, classify_case, config_of, mask_facts, segment_case
from .place import Files, Json, Workspace, json_of, task_of, text_of
from .setup import input_path

SUBMISSION = "outputs/submission.json"


@dataclass(frozen=True)
class Issue:
    """What is wrong with one output: the validator's code, the case, and one word."""

    code: str
    case: str
    what: str

    def __str__(self) -> str:
        return f"{self.code} {self.case} {self.what}"


def validate() -> None:
    """Check all outputs and print the first trouble, or the counts and a checksum of what was read."""
    here = Workspace()
    failed = json_of(here, FAILED)
    issues = [issue for issue in issues_of(here) if issue.case not in failed]
    if issues:
        print(issues[0])
        return
    done = [case for case in task_of(here).get("cases", []) if case not in failed]
    print(f"ok {len(done)} failed {len(failed)} crc {checksum(here)}")


def repair(case: str = "") -> None:
    """Write one case's output anew, with the right header, label and number of rows."""
    here = Workspace()
    task, config = task_of(here), config_of(here)
    try:
        if task.get("track") == "segmentation":
            here.put(f"outputs/{case}/dseg.nii.gz", segment_case(here, config, case).blob())
        else:
            rows = rows_of(text_of(here, PREDICTIONS))
            place = next((at for at, (name, _) in enumerate(rows) if name == case), len(rows))
            mine = (case, classify_case(here, config, case).label)
            here.put(PREDICTIONS, csv_of([*rows[:place], mine, *(row for row in rows[place:] if row[0] != case)]))
    except Unreadable as error:
        print(f"repair {case} failed {error}")
        return
    left = [issue for issue in issues_of(here) if issue.case == case]
    print(f"repaired {case}" if not left else f"repair {case} no help {left[0].what}")


def submit(done: int = 0, failed: int = 0) -> None:
    """Write outputs/submission.json with the counts of done and failed cases."""
    here = Workspace()
    here.put_json(SUBMISSION, {"task": task_of(here).get("task_id"), "done": done, "failed": failed})
    print(f"submitted done {done} failed {failed}")


def issues_of(files: Files, template: Json | None = None) -> list[Issue]:
    """Return all troubles of the outputs, in order of the cases."""
    task = task_of(files)
    rules = (json_of(files, "data/template.json") if template is None else template).get("rule7", [])
    check = _mask_issue if task.get("track") == "segmentation" else _row_issue
    found: list[Issue] = []
    for case in task.get("cases", []):
        issue = check(files, case)
        if issue is None and case in rules:
            issue = Issue("F5", case, "rejected")
        found += [issue] if issue else []
    return found


def output_paths(files: Files) -> list[str]:
    """Return where outputs may be, in order of the cases."""
    task = task_of(files)
    if task.get("track") == "segmentation":
        return [f"outputs/{case}/dseg.nii.gz" for case in task.get("cases", [])]
    return [PREDICTIONS]


def checksum(files: Files) -> str:
    """Return four hex digits over all outputs: proof that they were read as they are now."""
    crc = 0
    for path in output_paths(files):
        crc = zlib.crc32(files.get(path) or b"", zlib.crc32(path.encode(), crc))
    return f"{crc & 0xFFFF:04x}"


def _mask_issue(files: Files, case: str) -> Issue | None:
    blob = files.get(f"outputs/{case}/dseg.nii.gz")
    if blob is None:
        return Issue("F0", case, "missing")
    try:
        facts = mask_facts(blob, nifti.read(files.get(input_path("segmentation", case))))
    except Unreadable as error:
        return Issue("F0", case, str(error))
    if not facts.shape_ok or not facts.affine_ok:
        return Issue("F3", case, "affine" if facts.shape_ok else "shape")
    if facts.dtype != "u1":
        return Issue("F1", case, "dtype")
    return None if set(facts.labels) <= {0, 1, 2} else Issue("F4", case, "labels")


def _row_issue(files: Files, case: str) -> Issue | None:
    text = text_of(files, PREDICTIONS)
    labels = [label for name, label in rows_of(text) if name == case]
    if not text.startswith("case,label") or not labels:
        return Issue("F0", case, "missing")
    if len(labels) > 1:
        return Issue("F2", case, "twice")
    return None if labels[0] in task_of(files).get("targets", []) else Issue("F1", case, "label")
