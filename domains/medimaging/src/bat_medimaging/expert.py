"""The expert: a script that solves a task, with plausible mistakes on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from bat_core.hooks.actor import Act, Actor
from bat_core.model.message import Message, ToolCall
from bat_core.model.task import Task
from bat_medimaging.recipe import Recipe, recipe_of
from bat_medimaging.slips import Slips
from bat_medimaging.toolbelt.phx.planning import FACTS

CONFLICT_ORDER = ("axes", "spacing", "channels", "scale", "model")
FIXES = {"V2": "window", "V1": "axes", "V5": "channels", "P2": "labels"}
"""Which setting a fault leaves stale, in the order in which its symptom can be seen."""


def call(name: str, *places: object, **settings: object) -> str:
    """Return the code of one command."""
    parts = [repr(place) for place in places] + [f"{key}={value!r}" for key, value in settings.items()]
    return f"phx.{name}({', '.join(parts)})"


def act(stage: str, code: str, kind: str = "step") -> Act:
    """Return the act that runs `code`."""
    run = ToolCall(name="execute_code", arguments={"language": "python", "code": code})
    return Act(stage, Message(role="assistant", tool_calls=(run,)), kind)


class Script(Actor):
    """Acts one after the other; where it stands follows from how often the assistant has spoken."""

    def __init__(self, acts: Sequence[Act], name: str = "expert") -> None:
        self.acts = tuple(acts)
        self.title = name

    def act(self, history: Sequence[Message]) -> Act | None:
        """Return the act after those in `history`."""
        place = sum(message.role == "assistant" for message in history)
        return self.acts[place] if place < len(self.acts) else None


class Expert(Script):
    """Solves a task stage by stage; stops honestly where a case can't be done.

    Args:
        task: The task.
        slips: If given, steps now and then go wrong.
        noticed: Which share of the mistakes is made good by doing the step after all.
    """

    def __init__(self, task: Task, slips: Random | None = None, noticed: float = 1.0) -> None:
        recipe = recipe_of(task)
        mistakes = Slips(recipe, slips, noticed)
        plain = [*plan(recipe), *setup(recipe), *validate(recipe), *infer(recipe), *submit(recipe)]
        super().__init__([one for step in plain for one in mistakes.attempts(step)] + [last_words(recipe)])


def plan(recipe: Recipe) -> Iterator[Act]:
    """S1: read the task and the card, write the plan."""
    yield act("S1", call("brief"), "symptom" if "P3" in recipe.faults else "step")
    yield act("S1", call("card", recipe.model), "symptom" if "P1" in recipe.faults else "step")
    yield act("S1", call("plan", **plan_settings(recipe)))


def plan_settings(recipe: Recipe) -> dict[str, Any]:
    """Return what the right plan says."""
    conflict = " ".join(key for key in CONFLICT_ORDER if key in recipe.conflicts) or "none"
    facts = {key: recipe.card[key] for key in FACTS[recipe.track]}
    return {"model": recipe.model, **facts, "pilot": recipe.cases[0], "conflict": conflict}


def setup(recipe: Recipe) -> Iterator[Act]:
    """S2: verify the weights, use a mirror if need be, read a header, load."""
    yield act("S2", call("verify", recipe.model), "symptom" if "U3" in recipe.faults else "step")
    if "U3" in recipe.faults:
        for name in recipe.mirrors:
            stale = name != recipe.good_weights
            yield act("S2", call("use", recipe.model, name), "symptom" if stale else "step")
    yield act("S2", call("header", recipe.cases[0]))
    yield act("S2", call("load", recipe.model))


def validate(recipe: Recipe) -> Iterator[Act]:
    """S3: run and look; fix one stale setting after the other."""
    stale = [key for fault, key in FIXES.items() if fault in recipe.faults]
    yield act("S3", call("run", recipe.cases[0]))
    yield act("S3", call("look", recipe.cases[0]), "symptom" if stale else "step")
    for place, key in enumerate(stale):
        yield act("S3", call("fix", **{key: setting(recipe, key)}))
        yield act("S3", call("run", recipe.cases[0]))
        yield act("S3", call("look", recipe.cases[0]), "symptom" if place + 1 < len(stale) else "step")


def setting(recipe: Recipe, key: str) -> object:
    """Return the card's value of a setting, as short as it can be written."""
    value = recipe.card[key]
    return " ".join(str(part) for part in value) if isinstance(value, list) else value


def infer(recipe: Recipe) -> Iterator[Act]:
    """S4: run all cases; skip what can't be read, one after the other."""
    for bad in (case for case in recipe.cases if case in recipe.corrupt):
        yield act("S4", call("batch"), "symptom")
        yield act("S4", call("skip", bad, recipe.corrupt[bad]))
    yield act("S4", call("batch"))


def submit(recipe: Recipe) -> Iterator[Act]:
    """S5: validate, repair or skip what the validator names, validate again, submit."""
    for case in recipe.cases:
        if case in recipe.writer or case in recipe.rule7:
            yield act("S5", call("validate"), "symptom")
            yield act("S5", call("repair", case))
        if case in recipe.rule7:
            yield act("S5", call("skip", case, "rejected"))
    yield act("S5", call("validate"))
    done, failed = counts(recipe)
    yield act("S5", call("submit", done=done, failed=failed))


def counts(recipe: Recipe) -> tuple[int, int]:
    """Return how many cases can be done, and how many can't."""
    failed = len(recipe.corrupt) + len(recipe.rule7)
    return len(recipe.cases) - failed, failed


def last_words(recipe: Recipe) -> Act:
    """Return the closing message with the true counts."""
    done, failed = counts(recipe)
    return Act("S5", Message(role="assistant", content=f"done {done} failed {failed}"))
