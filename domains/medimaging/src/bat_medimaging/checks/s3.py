"""S3: the pilot, read back, and the settings that it showed to be wrong."""

from __future__ import annotations

from bat_core.verify.toolbox.facts import Fact
from bat_core.verify.toolbox.readback import read_back as seen
from bat_medimaging.casefile import Casefile, alike
from bat_medimaging.checks.base import Finding
from bat_medimaging.toolbelt.phx import cls, nifti, pipeline
from bat_medimaging.toolbelt.phx.pilot import pilot_path
from bat_medimaging.toolbelt.phx.place import json_of
from bat_medimaging.toolbelt.phx.setup import input_path


def pilot_made(case: Casefile) -> Finding:
    """A pilot output of this rollout is what the configuration gives."""
    name = _pilot(case)
    return Finding(bool(name) and _agrees(case, name, case.replay(name)), f"pilot {name or 'missing'}")


def read_back(case: Casefile) -> Finding:
    """A call printed what the pilot's output on disk says."""
    name = _pilot(case)
    if not name:
        return Finding(False, "no pilot")
    facts, need = _facts(case, name)
    return seen(case.calls, facts, need)


def pilot_schema(case: Casefile) -> Finding:
    """The pilot's output has the form that the task asks for."""
    name = _pilot(case)
    if not name:
        return Finding(False, "no pilot")
    if not case.segmentation:
        record = json_of(case.files, pilot_path("classification", name))
        fine = record.get("case") == name and record.get("label") in case.recipe.targets
        return Finding(fine and isinstance(record.get("conf"), float), "case, label or conf is wrong")
    found = _mask_facts(case, name)
    fine = found is not None and found.shape_ok and found.affine_ok and found.dtype == "u1"
    return Finding(bool(fine and found and set(found.labels) <= {0, 1, 2}), "shape, affine, dtype or labels")


def pilot_right(case: Casefile) -> Finding:
    """The pilot's output is what the documented pipeline gives."""
    name = _pilot(case)
    return Finding(bool(name) and _agrees(case, name, case.reference(name)), f"pilot {name or 'missing'}")


def stale_repaired(case: Casefile) -> Finding:
    """Every stale setting now is the documented one."""
    left = sorted(key for key in case.stale if not case.setting_right(key))
    return Finding(bool(_pilot(case)) and not left, f"still stale: {left}")


def sound_settings_kept(case: Casefile) -> Finding:
    """Settings that were right still are."""
    spoilt = sorted(key for key in case.knobs if key not in case.stale and not case.setting_right(key))
    return Finding(bool(_pilot(case)) and not spoilt, f"not as documented: {spoilt}")


def _pilot(case: Casefile) -> str:
    """Return the readable case whose pilot output is new, the planned one first."""
    order = sorted(case.recipe.readable, key=lambda name: name != case.planned("pilot"))
    return next((name for name in order if case.new(pilot_path(case.recipe.track, name))), "")


def _agrees(case: Casefile, name: str, wanted: object) -> bool:
    if isinstance(wanted, pipeline.Mask):
        return alike(case.masked(pilot_path("segmentation", name)), wanted)
    if not isinstance(wanted, cls.Guess):
        return False
    record = json_of(case.files, pilot_path("classification", name))
    return record.get("label") == wanted.label and _near(record.get("conf"), wanted.conf, 0.05)


def _near(value: object, wanted: float, slack: float) -> bool:
    return isinstance(value, (int, float)) and abs(value - wanted) <= slack


def _mask_facts(case: Casefile, name: str) -> pipeline.MaskFacts | None:
    try:
        volume = nifti.read(case.given[input_path("segmentation", name)])
        return pipeline.mask_facts(case.files.get(pilot_path("segmentation", name)), volume)
    except nifti.Unreadable:
        return None


def _facts(case: Casefile, name: str) -> tuple[list[Fact], int]:
    """Return facts of the pilot's output, and how many of them a look shows."""
    if case.segmentation:
        found = _mask_facts(case, name)
        return ([*found.counts, found.ratio, found.side], 3) if found else ([], 3)
    record = json_of(case.files, pilot_path("classification", name))
    mean = record.get("mean")
    values = [record.get("conf"), *(mean[:3] if isinstance(mean, list) else ())]
    facts: list[Fact] = [float(value) for value in values if isinstance(value, (int, float))]
    return [str(record.get("label"))[:32], *dict.fromkeys(facts)], 3
