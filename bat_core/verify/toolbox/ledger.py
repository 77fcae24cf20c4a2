"""The ledger as events in order: who wrote what, and what came first. Harness facts only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bat_core.model.evidence import Evidence
from bat_core.model.receipt import Receipt

Test = Callable[["Event"], bool]


@dataclass(frozen=True)
class Event:
    """One executed call.

    Attributes:
        seq: Position in the ledger.
        code: What was run.
        ok: Whether it ran to its end with exit code 0.
        stdout, stderr: What it printed.
        wrote: Paths that it changed; None where the harness does not say which.
        changed: Whether it left another workspace than it found.
        own: Whether the policy made it (False: it is history).
        tool: Name of the tool or language.
    """

    seq: int
    code: str
    ok: bool = True
    stdout: str = ""
    stderr: str = ""
    wrote: frozenset[str] | None = None
    changed: bool = False
    own: bool = True
    tool: str = ""


def events_of(evidence: Evidence) -> tuple[Event, ...]:
    """Return history and own calls of a sealed rollout, in order."""
    old = [_event(receipt, own=False) for receipt in evidence.history]
    return (*old, *(_event(receipt, own=True) for receipt in evidence.receipts))


def _event(receipt: Receipt, *, own: bool) -> Event:
    return Event(
        seq=receipt.seq,
        code=receipt.code,
        ok=receipt.status == "exited" and receipt.rc == 0,
        stdout=receipt.stdout,
        stderr=receipt.stderr,
        wrote=None if receipt.ws_before != receipt.ws_after else frozenset(),
        changed=receipt.ws_before != receipt.ws_after,
        own=own,
        tool=receipt.language,
    )


def first(events: Iterable[Event], test: Test) -> Event | None:
    """Return the first event that `test` accepts."""
    return next((event for event in events if test(event)), None)


def last(events: Sequence[Event], test: Test) -> Event | None:
    """Return the last event that `test` accepts."""
    return next((event for event in reversed(events) if test(event)), None)


def writers(events: Iterable[Event], path: str) -> tuple[Event, ...]:
    """Return the events that are known to have written `path`, in order."""
    return tuple(event for event in events if event.wrote is not None and path in event.wrote)


def in_order(events: Sequence[Event], *tests: Test) -> bool:
    """Return whether the first events that the tests accept exist and come in this order."""
    found = [first(events, test) for test in tests]
    places = [event.seq for event in found if event is not None]
    return len(places) == len(tests) and all(one < other for one, other in pairwise(places))


def nothing_between(events: Sequence[Event], done: Event, path: str) -> bool:
    """Return whether nobody can have written `path` after `done`."""
    later = [event for event in events if event.seq > done.seq]
    return not any(event.changed if event.wrote is None else path in event.wrote for event in later)
