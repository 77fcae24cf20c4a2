"""What a teacher has cost: a line a call, shared by all processes, against which the budget is held."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from bat_core.config.schema import TeacherConfig
from bat_core.errors import SynthesisError

CHARACTERS = 4
"""Characters a token, for estimates."""


@dataclass(frozen=True)
class Spent:
    """Sums of a ledger."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    failed: int = 0

    def price(self, settings: TeacherConfig) -> float:
        """Return what the tokens cost by the configured prices."""
        return (self.tokens_in * settings.price_in + self.tokens_out * settings.price_out) / 1e6


class Ledger:
    """The ledger in a folder. A call that failed costs what the server says, nothing if it says nothing."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.jsonl"

    def add(self, tokens_in: int, tokens_out: int, *, failed: bool) -> None:
        """Write down one call; whole lines are appended in one go, by whichever process."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"in": tokens_in, "out": tokens_out, "failed": failed}) + "\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def spent(self) -> Spent:
        """Return the sums over all calls."""
        try:
            rows = [json.loads(line) for line in self._path.read_text().splitlines()]
        except FileNotFoundError:
            return Spent()
        except ValueError as error:
            raise SynthesisError(f"{self._path} is damaged", remedy="remove it; the budget then begins anew") from error
        failed = sum(bool(row["failed"]) for row in rows)
        return Spent(len(rows), sum(row["in"] for row in rows), sum(row["out"] for row in rows), failed)

    def check(self, settings: TeacherConfig, characters: int) -> None:
        """Refuse a call that could exceed the budget.

        Raises:
            SynthesisError: With what was spent.
        """
        if not settings.tokens and not settings.money:
            return
        spent = self.spent()
        more = Spent(1, spent.tokens_in + characters // CHARACTERS, spent.tokens_out + settings.answer_tokens)
        over = settings.tokens and more.tokens_in + more.tokens_out > settings.tokens
        if over or (settings.money and more.price(settings) > settings.money):
            raise SynthesisError(
                f"the teacher's budget is spent: {line(spent, settings)}",
                remedy="raise bank.teacher.tokens or bank.teacher.money and run again; what was answered is kept",
            )


def line(spent: Spent, settings: TeacherConfig) -> str:
    """Return what was spent, in one line."""
    calls = f"{spent.calls} calls ({spent.failed} failed), {spent.tokens_in} + {spent.tokens_out} tokens"
    priced = settings.price_in or settings.price_out
    return f"{calls}, {spent.price(settings):.4f} by the configured prices" if priced else calls


def estimate(calls: int, characters: int, settings: TeacherConfig) -> str:
    """Return what so many calls with prompts of so many characters cost at most, in one line."""
    most = Spent(calls, calls * (characters // CHARACTERS), calls * settings.answer_tokens)
    return f"teacher: at most {line(most, settings)}, before repetitions; nothing that is cached is paid again"
