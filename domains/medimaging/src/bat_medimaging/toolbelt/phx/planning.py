"""S1: what is asked, what the card says, and the plan."""

from __future__ import annotations

import re

from . import cls, seg
from .place import Files, Json, Workspace, json_of, short, task_of, text_of, words

FACTS = {"segmentation": ("axes", "spacing"), "classification": ("channels", "scale")}
PATTERNS = {
    "axes": re.compile(r"\b([RL][AP][IS])\b"),
    "spacing": re.compile(r"\b(\d\.\d) ?mm\b"),
    "channels": re.compile(r"\b(RGB|BGR)\b"),
    "scale": re.compile(r"\bby (\d+)\b"),
}

PLAN = """# Plan

## S1 plan
model: {model}
{facts}
conflict: {conflict}
The card of {model} decides wherever the README says something else.

## S2 setup
Compare the sha256 of the weights with the listed one, use a mirror only if they differ, read one header.

## S3 validate
pilot: {pilot}
Run {pilot} alone, read its output back from disk, compare shape, labels and statistics with the card.

## S4 infer
Run all readable cases with the same settings; report a case that can't be read, never invent one.

## S5 submit
Run the validator, repair what it names, submit the true counts of done and failed cases.
"""


def brief() -> None:
    """Print the track, targets, cases, and how many of the targets each candidate model knows."""
    here = Workspace()
    task = task_of(here)
    targets = task.get("targets", [])
    known = {name: len(set(labels_of(here, name)) & set(targets)) for name in task.get("models", [])}
    parts = " ".join(f"{name} {count}/{len(targets)}" for name, count in known.items())
    print(
        f"{task.get('track', '?')[:3]} {' '.join(targets)}; cases {' '.join(task.get('cases', []))};"
        f" models {parts}; readme {recommended(here)}"
    )


def card(model: str = "") -> None:
    """Print what the card of `model` says, and whether the README agrees."""
    here = Workspace()
    facts = json_of(here, f"models/{model}/card.json")
    track = task_of(here).get("track", "")
    if not facts or track not in FACTS:
        print(f"no model {model}")
        return
    said = readme_facts(here, track)
    differs = [f"{key} {said[key]}" for key in FACTS[track] if said[key] and said[key] != short(facts.get(key))]
    rest = (
        f"window {short(facts['window'][0])} {short(facts['window'][1])} side {facts['side']}"
        if track == "segmentation"
        else f"labels {' '.join(facts['labels'])}"
    )
    own = " ".join(f"{key} {short(facts.get(key))}" for key in FACTS[track])
    print(f"{model} {own} {rest}; readme {'differs ' + ' '.join(differs) if differs else 'agrees'}")


def plan(
    model: str = "",
    axes: object = None,
    spacing: object = None,
    channels: object = None,
    scale: object = None,
    pilot: str = "",
    conflict: object = "none",
) -> None:
    """Write plan/plan.md."""
    here = Workspace()
    given = {"axes": axes, "spacing": spacing, "channels": channels, "scale": scale}
    facts = {key: short(given[key]) for key in FACTS.get(task_of(here).get("track", ""), ())}
    lines = "\n".join(f"{key}: {value}" for key, value in facts.items())
    named = " ".join(words(conflict)) or "none"
    here.put("plan/plan.md", PLAN.format(model=model, facts=lines, conflict=named, pilot=pilot))
    print(f"plan {model} {' '.join(facts.values())} pilot {pilot} conflict {named}")


def planned(files: Files, key: str) -> str:
    """Return what the plan says about `key`, empty where it says nothing."""
    found = re.search(rf"^{key}:[ \t]*(.*)$", text_of(files, "plan/plan.md"), re.MULTILINE)
    return found.group(1).strip() if found else ""


def labels_of(files: Files, model: str) -> list[str]:
    """Return the labels that a model's card lists."""
    return [str(label) for label in json_of(files, f"models/{model}/card.json").get("labels", [])]


def recommended(files: Files) -> str:
    """Return the model that the README names first."""
    text = text_of(files, "data/README.md")
    places = [(found.start(), name) for name in task_of(files).get("models", []) if (found := _word(name, text))]
    return min(places)[1] if places else "none"


def _word(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"\b{re.escape(name)}\b", text)


def readme_facts(files: Files, track: str) -> dict[str, str]:
    """Return what the README says about the facts of a track, empty where it says nothing."""
    text = text_of(files, "data/README.md")
    found = {key: PATTERNS[key].search(text) for key in FACTS[track]}
    return {key: short(_number(hit.group(1))) if hit else "" for key, hit in found.items()}


def _number(text: str) -> float | str:
    return float(text) if text[0].isdigit() else text


def knobs(track: str) -> tuple[str, ...]:
    """Return the settings of a track's pipeline."""
    return seg.KEYS if track == "segmentation" else cls.KEYS


def documented(card_facts: Json, track: str) -> Json:
    """Return the settings that a card documents."""
    out = {key: card_facts.get(key) for key in knobs(track)}
    return {key: " ".join(short(v) for v in value) if isinstance(value, list) else value for key, value in out.items()}
