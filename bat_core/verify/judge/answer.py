"""The only form in which a judge is heard: verdict, quotes, reason. Anything else is invalid."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bat_core.endpoint.client import LONGEST
from bat_core.verify.toolbox.strict import Read, read_as

CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Quote(BaseModel):
    """Words that a judge points at."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(max_length=8)
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str = Field(max_length=2000)


class Answer(BaseModel):
    """What a judge says about one item."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    verdict: Literal["yes", "no", "cannot_tell"]
    quotes: tuple[Quote, ...] = Field(max_length=8)
    reason: str = Field(max_length=600)


def parse(text: str) -> Read[Answer]:
    """Return the answer, or why the text is none. Nothing is guessed or cut out.

    Raw control characters, which grammars of servers let through in strings, count as spaces.
    """
    return read_as(CONTROL.sub(" ", text).strip().encode("utf-8", "replace"), Answer, LONGEST)


def schema() -> dict[str, Any]:
    """Return the JSON schema for servers that decode by one."""
    quote = {
        "type": "object",
        "properties": {
            "source": {"type": "string", "maxLength": 8},
            "start": {"type": "integer", "minimum": 0, "maximum": 99999},
            "end": {"type": "integer", "minimum": 0, "maximum": 99999},
            "text": {"type": "string", "maxLength": 300},
        },
        "required": ["source", "start", "end", "text"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["yes", "no", "cannot_tell"]},
            "quotes": {"type": "array", "items": quote, "maxItems": 4},
            "reason": {"type": "string", "maxLength": 300},
        },
        "required": ["verdict", "quotes", "reason"],
        "additionalProperties": False,
    }
