"""S3: one case first, looked at from disk."""

from __future__ import annotations

from . import nifti
from .nifti import Unreadable
from .pipeline import classify_case, config_of, guess_json, mask_facts, segment_case
from .place import Workspace, json_of, short, task_of, words
from .planning import knobs
from .setup import CONFIG, input_path
from .weights import configured


def run(case: str = "") -> None:
    """Run the pilot case with the current settings and write its output under validation/pilot/."""
    here = Workspace()
    config, track = config_of(here), task_of(here).get("track", "")
    if not config:
        print("no pipeline/config.json; load a model first")
        return
    try:
        if track == "segmentation":
            here.put(pilot_path(track, case), segment_case(here, config, case).blob())
        else:
            here.put(pilot_path(track, case), guess_json(case, classify_case(here, config, case)))
    except Unreadable as error:
        print(f"run {case} failed {error}")
        return
    print(f"run {case} written {' '.join(short_settings(config, track))}")


def look(case: str = "") -> None:
    """Read the pilot's output back from disk and print what it says."""
    here = Workspace()
    track = task_of(here).get("track", "")
    blob = here.get(pilot_path(track, case))
    try:
        line = _mask_line(here, case, blob) if track == "segmentation" else _guess_line(here, case)
    except Unreadable as error:
        line = f"unreadable {error}"
    print(f"{case} {line}" if blob else f"no pilot output of {case}")


def fix(**settings: object) -> None:
    """Change settings of the pipeline."""
    here = Workspace()
    config = config_of(here)
    known = knobs(task_of(here).get("track", ""))
    unknown = [key for key in settings if key not in known]
    if unknown or not config:
        print(f"no setting {unknown[0]}; known {' '.join(known)}" if unknown else "no pipeline/config.json")
        return
    told = {key: " ".join(words(v)) if isinstance(v, (list, tuple)) else v for key, v in settings.items()}
    here.put_json(CONFIG, {**config, **told})
    print("set " + " ".join(f"{key} {short(value)}" for key, value in told.items()))


def pilot_path(track: str, case: str) -> str:
    """Return where the pilot's output goes."""
    return f"validation/pilot/{case}/{'dseg.nii.gz' if track == 'segmentation' else 'prediction.json'}"


def short_settings(config: dict[str, object], track: str) -> list[str]:
    """Return the settings' values, as short as they get."""
    return [short(config.get(key)) for key in knobs(track)]


def _mask_line(here: Workspace, case: str, blob: bytes | None) -> str:
    volume = nifti.read(here.get(input_path("segmentation", case)))
    facts = mask_facts(blob, volume)
    card = json_of(here, f"models/{config_of(here).get('model')}/card.json")
    return (
        f"shape {_ok(facts.shape_ok)} affine {_ok(facts.affine_ok)} organ {facts.counts[0]} lesion {facts.counts[1]}"
        f" ratio {facts.ratio:.2f} side {facts.side}{_unlike(facts.side, card.get('side'))}"
    )


def _guess_line(here: Workspace, case: str) -> str:
    record = json_of(here, pilot_path("classification", case))
    model = configured(here, config_of(here))
    classes, index = getattr(model, "classes", ()), record.get("index")
    own = classes[index] if isinstance(index, int) and 0 <= index < len(classes) else "none"
    mean = record.get("mean")
    shown = " ".join(short(value) for value in mean[:3]) if isinstance(mean, list) else "none"
    off = isinstance(mean, list) and _off([value for value in mean[:3] if isinstance(value, (int, float))])
    label = record.get("label")
    return f"label {label}{_unlike(label, own)} conf {record.get('conf')} mean {shown}{' off' if off else ''}"


def _off(mean: list[float]) -> bool:
    """Whether normalised channel means are no longer near 0 and near each other."""
    return bool(mean) and (max(mean) - min(mean) > 1.5 or abs(sum(mean)) > 5)


def _unlike(value: object, wanted: object) -> str:
    return "" if value == wanted else f" not {wanted}"


def _ok(good: bool) -> str:
    return "ok" if good else "bad"
