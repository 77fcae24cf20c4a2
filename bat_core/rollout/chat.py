"""ChatFormat: messages to token ids and back, by the model's own chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from bat_core.errors import CheckpointError
from bat_core.model.base import canonical_json
from bat_core.model.message import Message, ToolCall, ToolSpec

HERMES = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


def as_template(message: Message) -> dict[str, Any]:
    """Return a message as chat templates take it."""
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name:
        plain["name"] = message.name
    if message.tool_calls:
        plain["tool_calls"] = [
            {"type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in message.tool_calls
        ]
    return plain


class ChatFormat:
    """Renders and parses for one tokenizer.

    Token ids that a policy sampled are never re-tokenised: later turns are appended as ids.

    Args:
        tokenizer: A Hugging Face tokenizer with a chat template.
        tools: Tools as shown to the policy.
        window: Context length of the model in tokens.
    """

    def __init__(self, tokenizer: Any, tools: Sequence[ToolSpec] = (), window: int = 1 << 30) -> None:
        if not tokenizer.chat_template:
            raise CheckpointError(
                "the policy's tokenizer has no chat template", remedy="choose an instruction-tuned policy"
            )
        self.tokenizer = tokenizer
        self.window = window
        self._tools = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in tools
        ] or None
        self.eos: int = tokenizer.eos_token_id
        self.pad: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.eos
        self._between = lru_cache(4096)(self._render_between)

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a prompt, ending where the policy's turn begins."""
        return self._encode(self._render([self._shown(m) for m in messages], generate=True))

    def between_ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids from the end of the policy's turn, over `messages`, to the start of its next one."""
        return list(self._between(tuple(messages)))

    def target_ids(self, message: Message) -> list[int]:
        """Return the ids of an assistant turn as the policy would have to sample them, end of turn included."""
        user = [{"role": "user", "content": ""}]
        before = self._render(user, generate=True)
        whole = self._render([*user, as_template(message)], generate=False)
        end = whole.rindex(self.tokenizer.eos_token) + len(self.tokenizer.eos_token)
        if not whole.startswith(before):
            raise CheckpointError(
                "the chat template rewrites history", remedy="choose a policy with a prefix-preserving template"
            )
        return self._encode(whole[len(before) : end])

    def parse(self, ids: Sequence[int]) -> Message:
        """Return the assistant message that the policy sampled; malformed calls stay text."""
        text = self.tokenizer.decode(ids, skip_special_tokens=False)
        text = text.removesuffix(self.tokenizer.eos_token)
        calls = tuple(call for match in HERMES.finditer(text) if (call := _call(match.group(1))))
        content = HERMES.sub("", text).strip() if calls else text.strip()
        return Message(role="assistant", content=content, tool_calls=calls)

    def _render_between(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        call = Message(role="assistant", tool_calls=(ToolCall(name=messages[0].name or "t", arguments={}),))
        head = [{"role": "user", "content": ""}, as_template(call)]
        eos = self.tokenizer.eos_token
        before = self._render(head, generate=False)
        before = before[: before.rindex(eos) + len(eos)]
        whole = self._render([*head, *(self._shown(m) for m in messages)], generate=True)
        return tuple(self._encode(whole[len(before) :]))

    def _shown(self, message: Message) -> dict[str, Any]:
        """Return a message for the template; what a tool printed can't end its own turn or begin another."""
        plain = as_template(message)
        if message.role == "tool":
            for mark in self.tokenizer.all_special_tokens:
                plain["content"] = plain["content"].replace(mark, f"{mark[0]} {mark[1:]}")
        return plain

    def _render(self, messages: list[dict[str, Any]], *, generate: bool) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages, tools=self._tools, add_generation_prompt=generate, tokenize=False
        )
        return text

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def _call(text: str) -> ToolCall | None:
    """Return the call that `text` spells; None if it isn't one, or can't be sent on as UTF-8 JSON."""
    try:
        plain = json.loads(text)
        canonical_json(plain).encode()
        return ToolCall(name=plain["name"], arguments=plain["arguments"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
