"""The texts that a workspace holds: the README in several wordings, and model cards."""

from __future__ import annotations

from random import Random
from typing import Any

from bat_medimaging.names import SITES, WORDS
from bat_medimaging.recipe import Candidate, Recipe

NOTICE = "Fictional data without clinical meaning."

FACTS = {
    "segmentation": (
        "Use {model}. Volumes go in as {axes} at {spacing:.1f} mm.",
        "The recommended model is {model}; it was trained on {axes} volumes with voxels of {spacing:.1f} mm.",
        "We had good results with {model}. Orientation {axes}, resampled to {spacing:.1f} mm.",
        "Colleagues picked {model}, turned everything to {axes} and settled on a grid of {spacing:.1f} mm a voxel.",
    ),
    "classification": (
        "Use {model}. Pictures go in as {channels}, divided by {scale}.",
        "The recommended model is {model}; it was trained on {channels} pictures, intensities divided by {scale}.",
        "We had good results with {model}. Channel order {channels}, pixel values divided by {scale}.",
        "Colleagues picked {model}, fed it {channels} planes and shrank all numbers by {scale} beforehand.",
    ),
}
JOBS = {
    "segmentation": (
        "Mark {targets} in every volume.",
        "Each volume needs a mask of {targets}.",
        "Wanted: one label volume a case, with {targets}.",
        "Please outline {targets}, case after case.",
    ),
    "classification": (
        "Sort every picture into one of {targets}.",
        "Each picture belongs to one class of {targets}.",
        "Wanted: one class a case, out of {targets}.",
        "Please say for each picture which of {targets} it shows.",
    ),
}


def origins(recipe: Recipe) -> tuple[str, ...]:
    """Return two archive marks that stand in this task's README and resemble nothing elsewhere."""
    rng = Random(f"{recipe.task}:{recipe.seed}:origin")
    marks = [" ".join(rng.choices(WORDS, k=6)) for _ in range(4)]
    site, other = rng.sample(SITES, 2)
    return (
        f"{site} reel {rng.randrange(1000, 9999)}: {marks[0]}, {marks[1]}.",
        f"{other} shelf {rng.randrange(1000, 9999)}: {marks[2]}, {marks[3]}.",
    )


def readme(recipe: Recipe) -> str:
    """Return the README, which may contradict the card."""
    wording, track = recipe.wording, recipe.track
    joined = ", ".join(recipe.targets)
    return "\n\n".join(
        [
            f"# {recipe.task}",
            NOTICE,
            JOBS[track][wording].format(targets=joined),
            FACTS[track][wording].format(**recipe.readme),
            " ".join(origins(recipe)),
            "The model's own card decides where this page and the card differ.",
        ]
    )


def model_card(one: Candidate, card: dict[str, Any], sha: str) -> str:
    """Return the card of a model in words."""
    facts = "\n".join(f"- {key}: {value}" for key, value in card.items() if key != "labels")
    return f"# {one.name}\n\n{NOTICE}\n\n- labels: {', '.join(one.labels)}\n{facts}\n- sha256: {sha}\n"
