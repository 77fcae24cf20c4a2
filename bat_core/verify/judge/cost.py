"""What judging costs: told before, counted while, told after."""

from __future__ import annotations

from dataclasses import dataclass

from bat_core.config.schema import JudgeConfig

CHARACTERS = 4
"""Characters a token, for the estimate."""


@dataclass
class Spent:
    """Counters of a judge."""

    items: int = 0
    gated: int = 0
    calls: int = 0
    cached: int = 0
    invalid: int = 0
    unreachable: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def price(self, settings: JudgeConfig) -> float:
        """Return what the tokens cost by the configured prices."""
        return (self.tokens_in * settings.price_in + self.tokens_out * settings.price_out) / 1e6

    def line(self, settings: JudgeConfig) -> str:
        """Return everything in one line."""
        parts = [
            f"{self.items} items",
            f"{self.calls} calls",
            f"{self.cached} votes from the cache",
            f"{self.gated} items without a call",
            f"{self.invalid} invalid and {self.unreachable} missing answers",
            f"{self.tokens_in} + {self.tokens_out} tokens",
            f"{self.seconds:.1f} s of waiting",
        ]
        priced = settings.price_in or settings.price_out
        return "judge: " + ", ".join(
            [*parts, f"{self.price(settings):.4f} by the configured prices"][: 8 if priced else 7]
        )


def estimate(items: int, characters: int, settings: JudgeConfig) -> str:
    """Return what judging will cost at most, in one line.

    Args:
        items: How many items will be asked about.
        characters: Characters of data over all items.
        settings: Votes, answer length and prices.
    """
    calls = items * settings.votes
    tokens = settings.votes * (characters // CHARACTERS + items * 700)
    worst = Spent(tokens_in=2 * tokens, tokens_out=2 * calls * settings.answer_tokens)
    text = f"judge: {items} items, up to {calls} calls, twice that if answers are invalid; about {tokens} tokens in"
    return f"{text}, at most {worst.price(settings):.4f}" if settings.price_in or settings.price_out else text
