"""The cache of votes, by content: the same question about the same evidence is asked once."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bat_core.model.base import digest_of
from bat_core.model.rubric import RubricItem
from bat_core.verify.judge.answer import Answer, parse
from bat_core.verify.judge.prompt import VERSION, Prompt


def key_of(item: RubricItem, model: str, seed: int, prompt: Prompt) -> str:
    """Return the key of one vote."""
    return digest_of([VERSION, item.id, item.criterion, model, seed, prompt.system, prompt.user]).removeprefix(
        "sha256:"
    )


class Cache:
    """Votes in memory, and in a folder if one is given. `cannot_tell` is never kept.

    Args:
        folder: Where votes are kept between runs; None keeps them in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._held: dict[str, Answer] = {}

    def get(self, key: str) -> Answer | None:
        """Return the vote of `key`; None if there is none or the file does not hold one."""
        if key not in self._held and self._folder is not None:
            try:
                found = parse((self._folder / f"{key}.json").read_text(encoding="utf-8")).value
            except (OSError, UnicodeDecodeError):
                found = None
            if found is not None:
                self._held[key] = found
        return self._held.get(key)

    def put(self, key: str, answer: Answer) -> None:
        """Keep a vote."""
        if answer.verdict == "cannot_tell":
            return
        self._held[key] = answer
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = self._folder / f"{key}.{os.getpid()}.partial"
            partial.write_text(json.dumps(answer.model_dump(mode="json")), encoding="utf-8")
            partial.replace(self._folder / f"{key}.json")
