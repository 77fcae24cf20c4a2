"""One question to a teacher: cached by content, budgeted, asked again until the answer has its form."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bat_core.bank.teacher.ledger import CHARACTERS, Ledger
from bat_core.config.schema import TeacherConfig
from bat_core.endpoint.client import Client, Form, Reply
from bat_core.errors import ConfigError, SynthesisError
from bat_core.model.base import digest_of

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Turns = Sequence[Mapping[str, str]]


class Exchange:
    """Asks the teacher and remembers. Its calls run on a loop of its own, so that anyone may wait for them.

    Args:
        settings: Endpoint, budget and the cache's folder.

    Raises:
        ConfigError: If no endpoint or model is named.
    """

    def __init__(self, settings: TeacherConfig) -> None:
        self.settings = told(settings)
        if not self.settings.cache:
            raise ConfigError("bank.teacher.cache is empty", remedy="name a folder; every exchange is kept there")
        folder = Path(self.settings.cache).expanduser()
        self._answers = folder / "answers"
        self.ledger = Ledger(folder)
        self.cached = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None

    def ask(self, turns: Turns, kind: type[M], seed: int = 0) -> M:
        """Return the teacher's answer as a value of `kind`.

        Raises:
            SynthesisError: If no answer of that form can be had, or the budget is spent.
        """
        form = Form(kind.__name__.lower(), kind.model_json_schema())
        asked = [dict(turn) for turn in turns]
        key = digest_of([self.settings.model, self.settings.temperature, seed, form.schema, asked])[7:]
        held = self._held(key, kind)
        if held is not None:
            self.cached += 1
            return held
        reason = ""
        for attempt in range(self.settings.tries):
            self.ledger.check(self.settings, sum(len(turn["content"]) for turn in asked))
            reply = self._run(self._connected().ask(self.settings.model, asked, seed + 1000 * attempt, form))
            self._count(reply, asked)
            if reply.text is None:
                raise SynthesisError(f"the teacher at {self.settings.endpoint} {reply.reason}", remedy=REMEDY)
            try:
                value = kind.model_validate_json(_bare(reply.text))
            except ValidationError as error:
                reason = reply.reason or " ".join(str(error).splitlines()[1:3]).strip()
                continue
            self._keep(key, asked, value)
            return value
        raise SynthesisError(
            f"the teacher answered {self.settings.tries} times without the form asked for: {reason[:160]}",
            remedy="choose another model, or bank.teacher.structured=schema",
        )

    def _count(self, reply: Reply, asked: Turns) -> None:
        """Write a call down; where a server that answered tells no usage, its tokens are estimated."""
        tokens_in, tokens_out = reply.tokens_in, reply.tokens_out
        if reply.text and not tokens_in + tokens_out:
            tokens_in = sum(len(turn["content"]) for turn in asked) // CHARACTERS
            tokens_out = -(-len(reply.text) // CHARACTERS)
        self.ledger.add(tokens_in, tokens_out, failed=reply.text is None)

    def _held(self, key: str, kind: type[M]) -> M | None:
        try:
            row = json.loads((self._answers / f"{key}.json").read_text(encoding="utf-8"))
            return kind.model_validate(row["answer"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or spoilt: it is asked again

    def _keep(self, key: str, asked: Turns, answer: BaseModel) -> None:
        self._answers.mkdir(parents=True, exist_ok=True)
        partial = self._answers / f"{key}.{os.getpid()}.{threading.get_ident()}.partial"
        row = {"asked": list(asked), "answer": answer.model_dump(mode="json")}
        partial.write_text(json.dumps(row), encoding="utf-8")
        partial.replace(self._answers / f"{key}.json")

    def _connected(self) -> Client:
        if self._client is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="teacher", daemon=True).start()
            self._client = self._run(self._connect())
        return self._client

    async def _connect(self) -> Client:
        return Client(self.settings, "bank.teacher")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._client is not None and self._loop is not None:
            self._run(self._client.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._client = None


REMEDY = "see to the endpoint and run again; what was answered is kept"


def told(settings: TeacherConfig) -> TeacherConfig:
    """Return the settings with what the environment says where they say nothing."""
    update = {
        name: os.environ.get(variable, "")
        for name, variable in (("endpoint", "BAT_TEACHER_URL"), ("model", "BAT_TEACHER_MODEL"))
        if not getattr(settings, name)
    }
    whole = settings.model_copy(update=update)
    for name, variable in (("endpoint", "BAT_TEACHER_URL"), ("model", "BAT_TEACHER_MODEL")):
        if not getattr(whole, name):
            raise ConfigError(f"bank.teacher.{name} is not set", remedy=f"set it, or {variable}")
    return whole


def _bare(text: str) -> str:
    """Return an answer without the fence that many models put around JSON."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped[3:-3].removeprefix("json").strip()
    return stripped
