"""S2: weights, headers and the pipeline's configuration."""

from __future__ import annotations

from . import cls, grid, nifti
from .nifti import Unreadable
from .place import Files, Json, Workspace, json_of, short, task_of
from .planning import knobs, planned
from .weights import expected_sha, mirrors, probe_of, sha_of

CONFIG = "pipeline/config.json"
CHOICE = "pipeline/weights.json"
ENVIRONMENT = "setup/environment.json"


def verify(model: str = "") -> None:
    """Print the hash and size of a model's weights and whether they are what they should be."""
    here = Workspace()
    if not here.get(f"models/{model}/card.json"):
        print(f"no model {model}")
        return
    others = mirrors(here, model)
    line = _state(here, model, "weights.npz")
    print(line + (f"; mirrors {' '.join(others)}" if others and line.endswith("mismatch") else ""))


def use(model: str = "", weights: str = "weights.npz") -> None:
    """Choose a weights file of `model`, if its hash is right."""
    here = Workspace()
    line = _state(here, model, weights)
    if line.endswith(" ok"):
        here.put_json(CHOICE, {"model": model, "weights": weights})
    print(line)


def header(case: str = "") -> None:
    """Print what a case's input says of itself."""
    here = Workspace()
    track = task_of(here).get("track", "")
    try:
        facts = header_facts(here.get(input_path(track, case)), track)
    except Unreadable as error:
        print(f"{case} unreadable {error}")
        return
    print(f"{case} {' '.join(str(fact) for fact in facts)}")


def load(model: str = "") -> None:
    """Load the weights, try them on a made-up input, and write the pipeline's configuration."""
    here = Workspace()
    choice = json_of(here, CHOICE)
    weights = str(choice.get("weights")) if choice.get("model") == model else "weights.npz"
    blob = here.get(f"models/{model}/{weights}") or b""
    try:
        probe = probe_of(blob)
    except Unreadable as error:
        print(f"load {model} failed {error}")
        return
    record = {"model": model, "weights": weights, "sha256": sha_of(blob), "probe": probe}
    here.put_json(ENVIRONMENT, record)
    here.put_json(CONFIG, {"model": model, "weights": weights, **first_settings(here)})
    print(f"load {model} {weights} ok probe {probe:.2f}")


def first_settings(files: Files) -> Json:
    """Return settings as the plan and the site's template give them; the template has the last word."""
    track = task_of(files).get("track", "")
    template = json_of(files, "data/template.json").get("settings", {})
    return {key: template[key] if key in template else planned(files, key) for key in knobs(track)}


def input_path(track: str, case: str) -> str:
    """Return where the input of a case is."""
    return f"data/cases/{case}/{'ct.nii.gz' if track == 'segmentation' else 'image.png'}"


def header_facts(blob: bytes | None, track: str) -> list[object]:
    """Return shape, voxel sizes and axes of a volume, or size and mean colour of a picture."""
    if track == "segmentation":
        volume = nifti.read(blob)
        zooms = [short(float(zoom)) for zoom in volume.zooms]
        return [*volume.data.shape, *zooms, grid.codes(volume.affine), volume.dtype]
    pixels = cls.decode(blob)
    return [*pixels.shape[1::-1], *(short(float(mean)) for mean in pixels.mean((0, 1)))]


def _state(files: Files, model: str, weights: str) -> str:
    blob = files.get(f"models/{model}/{weights}")
    if blob is None:
        return f"no weights {model} {weights}"
    sha = sha_of(blob)
    verdict = "ok" if sha == expected_sha(files, model) else "mismatch"
    return f"{model} {weights} sha {sha[:6]} size {len(blob)} {verdict}"
