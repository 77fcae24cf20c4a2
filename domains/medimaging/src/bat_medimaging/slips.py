"""Plausible mistakes: some are made good by the next step, some go unnoticed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from bat_core.hooks.actor import Act
from bat_core.model.message import Message, ToolCall
from bat_medimaging.recipe import DAMAGE, SCALES, Recipe, flipped

CHANCE = {
    "card": 0.15,
    "plan": 0.4,
    "verify": 0.4,
    "use": 0.4,
    "header": 0.4,
    "load": 0.15,
    "run": 0.1,
    "look": 0.4,
    "fix": 0.4,
    "batch": 0.7,
    "skip": 0.4,
    "repair": 0.2,
    "validate": 0.4,
    "submit": 0.6,
}
"""How often a step goes wrong. Bad habits are more frequent than confusions: they are what practice can cure."""
FORGOTTEN = ("verify", "header", "look", "validate")
"""Steps that a careless worker leaves out, rather than doing them wrong."""


class Slips:
    """Draws mistakes, or none without a source of randomness.

    Args:
        recipe: The task.
        rng: Source of randomness.
        noticed: Which share of the mistakes is followed by the right step.
    """

    def __init__(self, recipe: Recipe, rng: Random | None, noticed: float) -> None:
        self.recipe, self.rng, self.noticed = recipe, rng, noticed

    def attempts(self, step: Act) -> Iterator[Act]:
        """Yield what is done in place of `step`: itself, a mistake and itself, a mistake alone, or nothing."""
        code = str(step.message.tool_calls[0].arguments["code"])
        name = re.match(r"phx\.(\w+)", code)
        verb = name.group(1) if name else ""
        if self.rng is None or self.rng.random() >= CHANCE.get(verb, 0.0):
            yield step
            return
        # What a symptom shows is what later steps answer to, so that a mistake there can't go unnoticed.
        noticed = self.rng.random() < self.noticed or step.kind == "symptom"
        if not noticed and verb in FORGOTTEN:
            return
        mistake = getattr(self, f"_{verb}", None)
        wrong = mistake(code, self.rng) if mistake else code
        if wrong != code:
            run = ToolCall(name="execute_code", arguments={"language": "python", "code": wrong})
            yield Act(step.stage, Message(role="assistant", tool_calls=(run,)), "slip")
        if noticed or wrong == code:
            yield step

    def _other_model(self, code: str, rng: Random) -> str:
        others = [one.name for one in self.recipe.models if one.kind != "right"]
        return code.replace(repr(self.recipe.model), repr(rng.choice(others)))

    _card = _verify = _load = _other_model

    def _other_case(self, code: str, rng: Random) -> str:
        """Return the same call with a name that is no case, or with another case."""
        names = [*self.recipe.cases[1:], self.recipe.model]
        return code.replace(repr(self.recipe.cases[0]), repr(rng.choice(names)))

    _header = _other_case

    def _run(self, code: str, rng: Random) -> str:
        # Another case's pilot would stay in the workspace; a model's name is no case and leaves nothing.
        return code.replace(repr(self.recipe.cases[0]), repr(self.recipe.model))

    def _plan(self, code: str, rng: Random) -> str:
        """Return a plan that trusts the README, or one that names a conflict where there is none."""
        if not self.recipe.conflicts:
            return code.replace("conflict='none'", f"conflict={rng.choice(sorted(self.recipe.readme))!r}")
        code = code.replace(repr(self.recipe.model), repr(self.recipe.readme["model"]))
        for key in ("axes", "spacing", "channels", "scale"):
            code = self._value(code, key)
        return re.sub(r"conflict='[^']*'", "conflict='none'", code)

    def _value(self, code: str, key: str) -> str:
        card, readme = self.recipe.card, self.recipe.readme
        return code.replace(f"{key}={card[key]!r}", f"{key}={readme[key]!r}") if key in card else code

    def _wrong(self, key: str, said: object, rng: Random) -> object:
        """Return what the README says if that is wrong, else another likely value."""
        right = self.recipe.card[key]
        if said != right:
            return said
        if key == "axes":
            return flipped(str(right), rng.choice(((0,), (2,), (0, 1))))
        if key == "window":
            return "-1000 1000"
        if key == "channels":
            return str(right)[::-1]
        if key == "labels":
            return " ".join(self.recipe.targets)
        return rng.choice([value for value in (SCALES if key == "scale" else (1.5, 4.5)) if value != right])

    def _use(self, code: str, rng: Random) -> str:
        return re.sub(r"'[^']*\.npz'", "'weights.npz'", code)

    def _fix(self, code: str, rng: Random) -> str:
        """Return a wrong value of the same setting, so that the right one undoes it."""
        found = re.match(r"phx\.fix\((\w+)=", code)
        key = found.group(1) if found else ""
        wrong = self._wrong(key, self.recipe.card[key], rng)
        return f"phx.fix({key}={wrong!r})"

    def _batch(self, code: str, rng: Random) -> str:
        """Return a run of the pilot alone."""
        # With unreadable cases about, the pilot alone could already be all that there is to make.
        return f"phx.batch({(self.recipe.model if self.recipe.corrupt else self.recipe.cases[0])!r})"

    def _skip(self, code: str, rng: Random) -> str:
        right = code.split("'")[3]
        return code.replace(repr(right), repr(rng.choice([word for word in DAMAGE if word != right])))

    def _repair(self, code: str, rng: Random) -> str:
        right = code.split("'")[1]
        others = [case for case in self.recipe.readable if case != right]
        return code.replace(repr(right), repr(rng.choice(others)))

    def _submit(self, code: str, rng: Random) -> str:
        done, failed = len(self.recipe.corrupt) + len(self.recipe.rule7), len(self.recipe.cases)
        if done == 0:
            return f"phx.submit(done={failed - 1}, failed=1)"
        return f"phx.submit(done={failed}, failed=0)"
