"""A few states of a bank for people to look at: one of each focus and stratum, chosen by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bat_core.bank.store import Bank
from bat_core.model.message import Message
from bat_core.model.state import StageState


class Example(NamedTuple):
    """A state, told: its title, then (role, text) of its last turns and of the expert's first action."""

    title: str
    turns: Sequence[tuple[str, str]]


LAST = 4


def examples(bank: Bank, most: int = 18) -> list[Example]:
    """Return at most `most` examples."""
    chosen: dict[tuple[str, str], StageState] = {}
    for state in sorted(bank.states, key=lambda one: one.id):
        chosen.setdefault((state.focus, state.stratum.value), state)
    actions: dict[str, Message] = {}
    for one in bank.slices:
        actions.setdefault(one.source, one.target)
    made = []
    for (focus, stratum), state in sorted(chosen.items())[:most]:
        faults = ", ".join(state.task.faults) or "none"
        turns: list[tuple[str, str]] = [(message.role, told(message)) for message in state.messages[-LAST:]]
        if (action := actions.get(state.digest)) is not None:
            turns.append(("expert", told(action)))
        made.append(Example(f"{focus} {stratum} of {state.task.id} ({state.task.track}; faults: {faults})", turns))
    return made


def told(message: Message) -> str:
    """Return what a turn says and calls."""
    calls = [f"{call.name}({', '.join(map(str, call.arguments.values()))})" for call in message.tool_calls]
    return "\n".join([message.content, *calls]).strip()
