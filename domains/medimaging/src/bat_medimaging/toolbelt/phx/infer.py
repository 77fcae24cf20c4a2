"""S4: all cases with the settings that the pilot passed."""

from __future__ import annotations

import numpy as np

from . import cls, nifti
from .nifti import Array, Unreadable
from .pipeline import PREDICTIONS, classify_case, config_of, segment_case
from .place import Workspace, json_of, task_of, text_of, words
from .setup import input_path

FAILED = "outputs/failed_cases.json"


def batch(cases: object = "") -> None:
    """Run these cases, or all that aren't reported; nothing is written unless every input can be read."""
    here = Workspace()
    track, known, config = task_of(here).get("track", ""), task_of(here).get("cases", []), config_of(here)
    asked = words(cases) or [name for name in known if name not in json_of(here, FAILED)]
    names = [name for name in dict.fromkeys(asked) if name in known]
    if not names or not config:
        print("no pipeline/config.json; load a model first" if names else f"no case {' '.join(asked)}")
        return
    for name in names:
        try:
            _input(here, track, name)
        except Unreadable as error:
            print(f"batch stopped: {name} {error}")
            return
    try:
        _segment_all(here, config, names) if track == "segmentation" else _classify_all(here, config, names)
    except Unreadable as error:
        print(f"batch failed {error}")
        return
    _unskip(here, names)
    print(f"batch done {len(names)}{_left(here, track)}")


def skip(case: str = "", reason: str = "") -> None:
    """Report a case that can't be done in outputs/failed_cases.json. Says how many cases are left."""
    here = Workspace()
    here.put_json(FAILED, {**json_of(here, FAILED), case: reason})
    print(f"skipped {case} {reason}{_left(here, task_of(here).get('track', ''))}")


def _left(here: Workspace, track: str) -> str:
    """Return how many cases have neither an output nor a report, as the end of a line; empty if none is left."""
    failed = json_of(here, FAILED)
    classified = dict(rows_of(text_of(here, PREDICTIONS))) if track != "segmentation" else {}
    done = {name for name in task_of(here).get("cases", []) if name in classified or _has_mask(here, name)}
    left = [name for name in task_of(here).get("cases", []) if name not in done and name not in failed]
    return f"; left {len(left)}" if left else ""


def _has_mask(here: Workspace, case: str) -> bool:
    return here.get(f"outputs/{case}/dseg.nii.gz") is not None


def rows_of(text: str) -> list[tuple[str, str]]:
    """Return the rows of a predictions file, header and empty lines left out."""
    lines = [line.strip() for line in text.splitlines()[1:2000]]
    pairs = [line.split(",") for line in lines if line]
    return [(pair[0].strip(), pair[1].strip() if len(pair) == 2 else "") for pair in pairs]


def csv_of(rows: list[tuple[str, str]]) -> str:
    """Return a predictions file."""
    return "case,label\n" + "".join(f"{case},{label}\n" for case, label in rows)


def _input(here: Workspace, track: str, case: str) -> Array:
    blob = here.get(input_path(track, case))
    return nifti.read(blob).data if track == "segmentation" else cls.decode(blob)


def _segment_all(here: Workspace, config: dict[str, object], names: list[str]) -> None:
    """Write one mask a case; the site's old writers spoil the case that the template names."""
    old = json_of(here, "data/template.json").get("writer", {})
    for name in names:
        mask = segment_case(here, config, name)
        blob = mask.blob()
        if old.get(name) == "no_affine":
            blob = nifti.write(mask.labels, _plain(mask.affine))
        elif old.get(name) == "float32":
            blob = nifti.write(mask.labels.astype("f4"), mask.affine)
        here.put(f"outputs/{name}/dseg.nii.gz", blob)


def _plain(affine: Array) -> Array:
    """Return the identity: a writer that forgets where the image was."""
    return 0.0 * affine + np.eye(4)


def _classify_all(here: Workspace, config: dict[str, object], names: list[str]) -> None:
    """Write rows of these cases; the site's old writer appends one row twice or misspells its label."""
    old = json_of(here, "data/template.json").get("writer", {})
    known = dict(rows_of(text_of(here, PREDICTIONS)))
    for name in names:
        known[name] = classify_case(here, config, name).label
    order = [name for name in task_of(here).get("cases", []) if name in known]
    rows = [(name, known[name].upper() if old.get(name) == "capitals" else known[name]) for name in order]
    rows += [(name, known[name]) for name in order if old.get(name) == "twice"]
    here.put(PREDICTIONS, csv_of(rows))


def _unskip(here: Workspace, names: list[str]) -> None:
    failed = json_of(here, FAILED)
    if any(name in failed for name in names):
        here.put_json(FAILED, {case: why for case, why in failed.items() if case not in names})
