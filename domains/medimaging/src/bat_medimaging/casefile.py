"""A sealed rollout as checks see it: trusted inputs, the rollout's own files, and what they should be."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from bat_core.model.evidence import Evidence
from bat_core.model.task import Task
from bat_core.verify.toolbox.facts import Call, calls_of
from bat_core.verify.toolbox.stale import fresh
from bat_medimaging.recipe import Recipe, recipe_of
from bat_medimaging.score import dice
from bat_medimaging.toolbelt.phx import cls, nifti, pipeline, planning
from bat_medimaging.toolbelt.phx.place import json_of, short, text_of, words
from bat_medimaging.toolbelt.phx.seg import numbers
from bat_medimaging.toolbelt.phx.submit import issues_of
from bat_medimaging.workspace import PROTECTED, TaskKey, workspace_of

Output = pipeline.Mask | cls.Guess
ALIKE = 0.95


class Sealed:
    """Files of a rollout over the given ones: what was given is taken from us, whatever it was made into."""

    def __init__(self, given: Mapping[str, bytes], files: Mapping[str, bytes]) -> None:
        self.given, self.files = given, files

    def get(self, path: str, /) -> bytes | None:
        """Return the content of `path`, None where there is no such file."""
        return self.given.get(path) if path.startswith(PROTECTED) else self.files.get(path)


class Casefile:
    """Evidence with everything that several checks ask of it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.recipe: Recipe = recipe_of(evidence.task)
        self.given = workspace_of(evidence.task)
        self.files = Sealed(self.given, evidence.files)
        self.start = Sealed(self.given, evidence.start)
        self._masks: dict[str, nifti.Volume | None] = {}

    @property
    def segmentation(self) -> bool:
        """Whether the track is segmentation."""
        return self.recipe.track == "segmentation"

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """All calls, those before the policy took over included: checks that use them ask for new artifacts too."""
        return calls_of((*self.evidence.history, *self.evidence.receipts))

    def new(self, path: str) -> bool:
        """Whether this rollout made or changed the file at `path`."""
        return fresh(self.start, self.files, path)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The pipeline's configuration at the end."""
        return pipeline.config_of(self.files)

    @cached_property
    def documented(self) -> dict[str, Any]:
        """The configuration that the card of the right model documents."""
        settings = planning.documented({**self.recipe.card}, self.recipe.track)
        return {"model": self.recipe.model, "weights": self.recipe.good_weights, **settings}

    def planned(self, key: str) -> str:
        """Return what the plan says about `key`."""
        return planning.planned(self.files, key)

    def plan_text(self) -> str:
        """Return the plan."""
        return text_of(self.files, "plan/plan.md")

    def setting_right(self, key: str) -> bool:
        """Whether a setting of the configuration is the documented one."""
        return same_setting(self.config.get(key), self.documented[key])

    @cached_property
    def knobs(self) -> tuple[str, ...]:
        """The settings of this track."""
        return planning.knobs(self.recipe.track)

    @cached_property
    def stale(self) -> frozenset[str]:
        """Settings that the site's template gives wrongly."""
        return frozenset(
            key for key, value in self.recipe.settings.items() if not same_setting(value, self.documented[key])
        )

    def reference(self, case: str) -> Output | None:
        """Return the output of the documented pipeline, None for an input that can't be read."""
        return replayed(TaskKey(self.evidence.task), json.dumps(self.documented, sort_keys=True), case)

    @cached_property
    def told(self) -> str:
        """The rollout's own configuration as a key; the documented one's where they mean the same."""
        if all(self.setting_right(key) for key in self.knobs) and self.config.get("model") == self.recipe.model:
            return json.dumps(self.documented, sort_keys=True)
        keys = ("model", "weights", *self.knobs)
        return json.dumps({key: _plain(self.config.get(key)) for key in keys}, sort_keys=True)

    def replay(self, case: str) -> Output | None:
        """Return the output of the rollout's own configuration."""
        return replayed(TaskKey(self.evidence.task), self.told, case)

    def says(self, case: str, wanted: Output | None) -> bool:
        """Whether the rollout's output of a case is `wanted`."""
        if self.segmentation:
            return alike(self.masked(f"outputs/{case}/dseg.nii.gz"), wanted)
        told = {label.lower() for label in self.rows.get(case, [])}
        return isinstance(wanted, cls.Guess) and told == {wanted.label}

    @cached_property
    def genuine(self) -> frozenset[str]:
        """Readable cases whose output is a model's, under the own or the documented settings."""
        names = self.recipe.readable
        return frozenset(n for n in names if self.says(n, self.replay(n)) or self.says(n, self.reference(n)))

    @cached_property
    def valid(self) -> frozenset[str]:
        """Genuine cases with which the validator has no quarrel, its broken rule aside."""
        return self.genuine - {issue.case for issue in issues_of(self.files, {})}

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        """Labels by case of the predictions file, as often as they stand there."""
        out: dict[str, list[str]] = {}
        for case, label in _rows(text_of(self.files, pipeline.PREDICTIONS)):
            out.setdefault(case, []).append(label)
        return out

    def masked(self, path: str) -> nifti.Volume | None:
        """Return a mask file of the rollout, None if it is none."""
        if path not in self._masks:
            try:
                self._masks[path] = nifti.read(self.files.get(path))
            except nifti.Unreadable:
                self._masks[path] = None
        return self._masks[path]

    @cached_property
    def failed(self) -> dict[str, Any]:
        """The reported failed cases."""
        return json_of(self.files, "outputs/failed_cases.json")


def casefile_of(evidence: Evidence) -> Casefile:
    """Return the case file of `evidence`, shared by the checks that follow each other."""
    for one in list(_RECENT):
        if one.evidence is evidence:
            return one
    made = Casefile(evidence)
    _RECENT.append(made)
    return made


_RECENT: deque[Casefile] = deque(maxlen=8)


@lru_cache(maxsize=4096)
def replayed(key: TaskKey, config: str, case: str) -> Output | None:
    """Return a case's output under `config`, None where it has none."""
    task: Task = key.task
    files, settings = workspace_of(task), json.loads(config)
    run = pipeline.segment_case if task.track == "segmentation" else pipeline.classify_case
    try:
        return run(files, settings, case)
    except nifti.Unreadable:
        return None


def alike(mask: nifti.Volume | None, wanted: Output | None) -> bool:
    """Whether a mask says the same as a replayed one, and says anything."""
    if mask is None or not isinstance(wanted, pipeline.Mask) or mask.data.shape != wanted.labels.shape:
        return False
    pairs = [(np.asarray(mask.data == k), np.asarray(wanted.labels == k)) for k in (1, 2)]
    return bool(pairs[0][0].any() or pairs[1][0].any()) and all(dice(one, other) >= ALIKE for one, other in pairs)


def same_setting(value: object, wanted: object) -> bool:
    """Whether two spellings of a setting mean the same: numbers by value, words by order."""
    left, right = numbers(_plain(value)), numbers(_plain(wanted))
    if left or right:
        return left == right
    return words(_plain(value)) == words(_plain(wanted))


def _plain(value: object) -> str:
    """Return a setting as a short text: what an agent wrote may be anything."""
    if isinstance(value, (list, tuple)):
        return " ".join(str(short(part))[:32] for part in value[:8])
    return str(value)[:128]


def _rows(text: str) -> list[tuple[str, str]]:
    lines = [re.split(r"\s*,\s*", line.strip()) for line in text.splitlines()[1:512] if line.strip()]
    return [(line[0], line[1] if len(line) == 2 else "") for line in lines]
