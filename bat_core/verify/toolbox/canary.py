"""Canary input: an input whose right answer is known before anything runs, and is nobody's guess."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bat_core.verify.toolbox.finding import Finding
from bat_core.verify.toolbox.rerun import CleanRoom


@dataclass(frozen=True)
class Canary:
    """A planted input.

    Attributes:
        inputs: Its files.
        command: How the entry point is called for it.
        output: Path of the output.
        answer: Whether an output is the known answer; must not raise.
        name: What it is, for the reason.
    """

    inputs: Mapping[str, bytes]
    command: Sequence[str]
    output: str
    answer: Callable[[bytes], bool]
    name: str = "canary"


async def answers(room: CleanRoom, files: Mapping[str, bytes], canaries: Sequence[Canary]) -> Finding:
    """Return whether the entry point gives the known answer to every canary.

    Plant at least two whose answers differ: one answer alone may be had by a constant.
    """
    for canary in canaries:
        ready = {path: data for path, data in files.items() if path != canary.output} | dict(canary.inputs)
        ran = await room.run(ready, canary.command)
        if ran.ok is None:
            return Finding(None, f"{canary.name}: {ran.reason}")
        made = ran.files.get(canary.output)
        if not ran.ok or made is None or not canary.answer(made):
            why = ran.reason or ("no output" if made is None else "wrong answer")
            return Finding(False, f"{canary.name}: {why}", claimed=True, evidence=0.0)
    return Finding(bool(canaries), "" if canaries else "no canary was planted")
