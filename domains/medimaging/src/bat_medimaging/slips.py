"""Plausible mistakes: some are made good by the next step, some go unnoticed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from bat_core.hooks.actor import Act
from bat_core.model.message import Message, ToolCall
from bat_medimaging.recipe import DAMAGE, SCALES, Recipe, flipped

EASY, HARD = 0.25, 0.5

CHANCE = {
    "card": EASY,
    "plan": HARD,
    "verify": EASY,
    "use": HARD,
    "header": EASY,
    "load": EASY,
    "run": EASY,
    "look": EASY,
    "fix": HARD,
    "batch": HARD,
    "skip": HARD,
    "repair": EASY,
    "validate": EASY,
    "submit": HARD,
}
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
        """Return a plan with the README's value, another model, or a wrong conflict."""
        wrong = [self._other_model(code, rng), *(self._value(code, key, rng) for key in ("axes", "spacing"))]
        wrong += [self._value(code, key, rng) for key in ("channels", "scale")]
        other = sorted(
            {"none", "model", *self.recipe.readme}
            - self.recipe.conflicts
            - ({"none"} if not self.recipe.conflicts else set())
        )
        wrong.append(re.sub(r"conflict='[^']*'", f"conflict={rng.choice(other)!r}", code))
        return rng.choice([one for one in wrong if one != code])

    def _value(self, code: str, key: str, rng: Random) -> str:
        card = self.recipe.card
        if key not in card:
            return code
        said = self.recipe.readme.get(key, card[key])
        return code.replace(f"{key}={card[key]!r}", f"{key}={self._wrong(key, said, rng)!r}")

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
        """Return a run of the pilot alone, or of a name that is no case."""
        # With unreadable cases about, the pilot alone could already be all that there is to make.
        some = self.recipe.model if self.recipe.corrupt else rng.choice((self.recipe.cases[0], self.recipe.model))
        return f"phx.batch({some!r})"

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
