"""S4: all cases, none invented, none missing."""

from __future__ import annotations

from bat_core.verify.toolbox.degenerate import identical
from bat_medimaging.casefile import Casefile
from bat_medimaging.checks.base import Finding
from bat_medimaging.toolbelt.phx import cls
from bat_medimaging.toolbelt.phx.infer import FAILED
from bat_medimaging.toolbelt.phx.pipeline import PREDICTIONS

REASONS = {
    "truncated": ("truncated", "incomplete", "cut"),
    "damaged": ("damaged", "corrupt", "invalid"),
    "empty": ("empty", "zero"),
    "rejected": ("rejected", "rule", "validator"),
}


def covered(case: Casefile) -> Finding:
    """Every readable case has an output that a model made."""
    missing = [name for name in case.recipe.readable if name not in case.genuine]
    return Finding(_begun(case) and not missing, f"missing {missing}")


def none_invented(case: Casefile) -> Finding:
    """No output stands for a case that can't be read or doesn't exist."""
    invented = sorted(_present(case) - set(case.recipe.readable))
    return Finding(_begun(case) and not invented, f"invented {invented[:4]}"[:120])


def outputs_right(case: Casefile) -> Finding:
    """All outputs are what the documented pipeline gives."""
    wrong = [name for name in case.recipe.readable if not case.says(name, case.reference(name))]
    return Finding(_begun(case) and not wrong, f"differ {wrong}")


def same_pipeline(case: Casefile) -> Finding:
    """All outputs come from the configuration that stands in the workspace."""
    wrong = [name for name in sorted(_present(case)) if not case.says(name, case.replay(name))]
    return Finding(_begun(case) and not wrong, f"differ {wrong[:4]}"[:120])


def distinct(case: Casefile) -> Finding:
    """Outputs differ from case to case."""
    return Finding(_begun(case) and not _constant(case), "one output for all" if _constant(case) else "")


def failures_reported(case: Casefile) -> Finding:
    """Every unreadable case is reported with its reason."""
    missed = [name for name, why in case.recipe.corrupt.items() if not reason_given(case, name, why)]
    return Finding((case.new(FAILED) or _begun(case)) and not missed, f"missed {missed}")


def failures_real(case: Casefile) -> Finding:
    """No sound case is reported as failed."""
    unreal = sorted(set(case.failed) - set(case.recipe.corrupt) - set(case.recipe.rule7))
    return Finding(_begun(case) and not unreal, f"unreal {unreal[:4]}"[:120])


def reason_given(case: Casefile, name: str, why: str) -> bool:
    """Whether a case is reported as failed with a word for the true reason."""
    told = str(case.failed.get(name, ""))[:200].lower()
    return any(word in told for word in REASONS[why])


def _begun(case: Casefile) -> bool:
    """Whether this rollout made outputs, half of them genuine at least and not all the same."""
    paths = [f"outputs/{name}/dseg.nii.gz" for name in case.recipe.cases] if case.segmentation else [PREDICTIONS]
    if not any(case.new(path) for path in paths) or _constant(case):
        return False
    return 2 * len(case.genuine) >= len(case.recipe.readable)


def _present(case: Casefile) -> set[str]:
    if not case.segmentation:
        return set(case.rows)
    parts = [path.split("/") for path in case.evidence.files if path.startswith("outputs/")]
    return {part[1] for part in parts if len(part) == 3 and part[2] == "dseg.nii.gz"}


def _constant(case: Casefile) -> bool:
    """Whether all outputs are one, where a model's would not be."""
    names = sorted(_present(case))
    if len(names) < 2:
        return False
    if case.segmentation:
        return bool(identical({name: case.files.get(f"outputs/{name}/dseg.nii.gz") for name in names}))
    wanted = {guess.label for name in names if isinstance(guess := case.replay(name), cls.Guess)}
    return len({case.rows[name][0] for name in names}) == 1 and len(wanted) > 1
