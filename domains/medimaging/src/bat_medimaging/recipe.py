"""What a task consists of: everything drawn, before anything is rendered."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

from bat_core.model.task import Task
from bat_medimaging import names

FLIP = str.maketrans("RLAPSI", "LRPAIS")
SCALES = (255, 128, 100)
DAMAGE = ("truncated", "damaged", "empty")


@dataclass(frozen=True)
class Candidate:
    """A model on offer; `kind` is `right`, or what is wrong with it for this task."""

    name: str
    kind: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """A task, drawn. `seed` belongs to graders: anatomy and classes follow from it alone."""

    task: str
    track: str
    kind: str
    seed: int
    targets: tuple[str, ...]
    cases: tuple[str, ...]
    models: tuple[Candidate, ...]
    card: dict[str, Any]
    readme: dict[str, Any]
    wording: int
    faults: tuple[str, ...]
    corrupt: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    writer: dict[str, str] = field(default_factory=dict)
    rule7: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    good_weights: str = "weights.npz"

    @property
    def model(self) -> str:
        """The one model that can do the task."""
        return next(one.name for one in self.models if one.kind == "right")

    @property
    def readable(self) -> tuple[str, ...]:
        """Cases whose input can be read."""
        return tuple(case for case in self.cases if case not in self.corrupt)

    @property
    def conflicts(self) -> frozenset[str]:
        """Facts about which the README is wrong."""
        wrong = {key for key, value in self.readme.items() if key != "model" and value != self.card[key]}
        return frozenset(wrong | ({"model"} if self.readme["model"] != self.model else set()))


def recipe_of(task: Task) -> Recipe:
    """Return what `task` consists of; the same task gives the same recipe."""
    kind = str(task.public.get("kind", "bank"))
    return _drawn(task.id, task.track, kind, f"{task.version}:{task.seed}", int(task.private["seed"]), task.faults)


@lru_cache(maxsize=512)
def _drawn(task: str, track: str, kind: str, key: str, seed: int, faults: tuple[str, ...]) -> Recipe:
    rng = Random(f"{key}:{track}:{kind}")
    segmentation = track == "segmentation"
    count = rng.choice((3, 4) if segmentation else (4, 5, 6))
    chosen = rng.sample(names.WORDS, count + 3)
    cases, spare = tuple(chosen[:count]), chosen[count:]
    targets = _targets(rng, segmentation)
    card = _segmentation_card(rng) if segmentation else _classification_card(rng, targets)
    models = _models(rng, targets, card, spare[: rng.choice((2, 3))])
    right = next(one for one in models if one.kind == "right")
    base = {key: card[key] for key in (("axes", "spacing") if segmentation else ("channels", "scale"))}
    planted = _plant(Random(f"{key}:{track}:faults"), track, cases, card, faults)
    readme = {**base, "model": right.name, **planted.pop("readme", {})}
    if "P3" in faults:
        readme["model"] = rng.choice([one.name for one in models if one.kind != "right"])
    wording = 3 if kind == "blind" else rng.randrange(3)
    mirrors = planted.pop("mirrors", ("weights.bak.npz",) if rng.random() < 0.5 else ())
    settings = {**_template(card, segmentation), **planted.pop("settings", {})}
    return Recipe(
        task, track, kind, seed, targets, cases, models, card, readme, wording, faults,
        mirrors=mirrors, settings=settings, **planted,
    )  # fmt: skip


def _targets(rng: Random, segmentation: bool) -> tuple[str, ...]:
    if segmentation:
        return rng.choice(names.ORGANS), rng.choice(names.LESIONS)
    return tuple(sorted(rng.sample(names.CLASSES, 4)))


def _segmentation_card(rng: Random) -> dict[str, Any]:
    return {
        "axes": rng.choice("RL") + rng.choice("AP") + rng.choice("SI"),
        "spacing": rng.choice((2.5, 3.0)),
        "window": [rng.choice((-200, -160, -120)), rng.choice((240, 280, 320))],
        "side": rng.choice("RL") + rng.choice("SI"),
    }


def _classification_card(rng: Random, targets: tuple[str, ...]) -> dict[str, Any]:
    return {
        "channels": rng.choice(("RGB", "BGR")),
        "scale": rng.choice(SCALES),
        "labels": rng.sample(targets, 4),
    }


def _template(card: dict[str, Any], segmentation: bool) -> dict[str, Any]:
    """Return the settings that the site's template always gives."""
    key = "window" if segmentation else "labels"
    return {key: " ".join(str(part) for part in card[key])}


def _models(rng: Random, targets: tuple[str, ...], card: dict[str, Any], spare: list[str]) -> tuple[Candidate, ...]:
    """Return the right model among others that lack labels or know other ones."""
    segmentation = "axes" in card
    kinds = ["right", *rng.sample(("partial", "other"), len(spare) - 1)]
    rng.shuffle(kinds)
    pool = [word for word in (names.ORGANS if segmentation else names.CLASSES) if word not in targets]
    labels = {
        "right": targets if segmentation else tuple(card["labels"]),
        "partial": targets[:1] if segmentation else tuple(rng.sample(targets, 2)),
        "other": (rng.choice(pool), rng.choice([word for word in names.LESIONS if word not in targets]))
        if segmentation
        else tuple(rng.sample(pool, 4)),
    }
    return tuple(Candidate(name, kind, labels[kind]) for name, kind in zip(spare, kinds, strict=True))


def _plant(rng: Random, track: str, cases: tuple[str, ...], card: dict[str, Any], faults: tuple[str, ...]) -> Any:
    """Return the fields of a recipe that its faults change. The first case is never spoilt: pilots use it."""
    out: dict[str, Any] = {}
    later = list(cases[1:])
    rng.shuffle(later)
    if "P1" in faults:
        out["readme"] = _contradiction(rng, card)
    if "U3" in faults:
        stacked = "U6" in faults
        out["mirrors"] = ("weights.bak.npz", "weights.alt.npz") if stacked else ("weights.bak.npz",)
        out["good_weights"] = out["mirrors"][-1]
    settings = {name: value for fault in faults if (stale := _stale(rng, fault, card)) for name, value in [stale]}
    if settings:
        out["settings"] = settings
    broken = [later.pop() for _ in range(("I1" in faults) + ("I2" in faults))]
    out["corrupt"] = dict(zip(broken, rng.sample(DAMAGE, len(broken)), strict=True))
    modes = {"F2": "twice", "F3": "no_affine", "F1": "float32" if track == "segmentation" else "capitals"}
    out["writer"] = {later.pop(): modes[fault] for fault in faults if fault in modes}
    out["rule7"] = (later.pop(),) if "F5" in faults else ()
    return out


def _contradiction(rng: Random, card: dict[str, Any]) -> dict[str, Any]:
    if "axes" in card:
        if rng.random() < 0.5:
            return {"axes": flipped(card["axes"], rng.choice(((0,), (0, 1), (2,), (0, 1, 2))))}
        return {"spacing": rng.choice((1.5, 4.5, 5.0))}
    if rng.random() < 0.5:
        return {"channels": card["channels"][::-1]}
    return {"scale": rng.choice([scale for scale in SCALES if scale != card["scale"]])}


def _stale(rng: Random, fault: str, card: dict[str, Any]) -> tuple[str, Any] | None:
    """Return the setting that a fault leaves stale in the site's template."""
    if fault == "V1":
        return "axes", flipped(card["axes"], rng.choice(((0,), (2,), (0, 2), (0, 1))))
    if fault == "V2":
        return "window", "none"
    if fault == "V5":
        return "channels", card["channels"][::-1]
    if fault == "P2":
        return "labels", " ".join([*card["labels"][1:], card["labels"][0]])
    return None


def flipped(axes: str, which: tuple[int, ...]) -> str:
    """Return an orientation with the axes at these places turned round."""
    return "".join(letter.translate(FLIP) if place in which else letter for place, letter in enumerate(axes))
