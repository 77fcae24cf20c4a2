"""Messages between harness and policy, in the form that chat templates take."""

from __future__ import annotations

from typing import Literal

from bat_core.model.base import JsonObject, Value


class ToolCall(Value):
    """One call of a tool, as the policy made it."""

    name: str
    arguments: JsonObject


class Message(Value):
    """One turn. `tool_calls` only in assistant turns; `name` is the tool's in tool turns."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    name: str | None = None


class ToolSpec(Value):
    """A tool as it is shown to the policy; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: JsonObject
