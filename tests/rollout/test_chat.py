from __future__ import annotations

import json
from copy import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bat_core.errors import CheckpointError
from bat_core.model.message import Message, ToolCall
from bat_core.rollout.chat import ChatFormat, as_template

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>"), max_size=20)
CODE = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>"), min_size=1, max_size=30)
CALL = st.builds(lambda code: ToolCall(name="execute_code", arguments={"language": "python", "code": code}), CODE)


def turn(call: ToolCall) -> Message:
    return Message(role="assistant", tool_calls=(call,))


@QUICK
@given(TEXT, st.lists(st.tuples(CALL, TEXT), max_size=3), TEXT)
def test_the_parts_make_up_the_whole_conversation(
    chat: ChatFormat, question: str, turns: list[tuple[ToolCall, str]], final: str
) -> None:
    """Prompt + what is sampled + what is between = the tokens of the conversation as one text."""
    messages = [Message(role="system", content="Be brief."), Message(role="user", content=question)]
    ids = chat.prompt_ids(messages)
    for call, answer in turns:
        observation = Message(role="tool", name="execute_code", content=answer)
        ids += chat.target_ids(turn(call)) + chat.between_ids([observation])
        messages += [turn(call), observation]
    last = Message(role="assistant", content=final)
    ids += chat.target_ids(last)
    text = chat.tokenizer.apply_chat_template([as_template(m) for m in [*messages, last]], tokenize=False)
    assert ids == chat.tokenizer(text.rstrip("\n"), add_special_tokens=False)["input_ids"]


@QUICK
@given(CALL)
def test_a_sampled_call_is_parsed_back(chat: ChatFormat, call: ToolCall) -> None:
    ids = chat.target_ids(turn(call))
    assert ids[-1] == chat.eos
    assert chat.parse(ids) == turn(call)


@QUICK
@given(TEXT)
def test_a_text_is_parsed_back(chat: ChatFormat, text: str) -> None:
    assert chat.parse(chat.target_ids(Message(role="assistant", content=text))).content == text.strip()


def parse(chat: ChatFormat, text: str) -> Message:
    return chat.parse(chat.tokenizer(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "execute_code", "arguments": {"code": "x"}',
        '{"name": "execute_code"}',
        '{"arguments": {}}',
        '{"name": 3, "arguments": {}}',
        '{"name": "execute_code", "arguments": [1]}',
        '{"name": "execute_code", "arguments": "code"}',
        "{'name': 'execute_code', 'arguments': {}}",
        '{"name": "execute_code", "arguments": {"code": NaN}}',
        '{"name": "execute_code", "arguments": {"code": Infinity}}',
        '{"name": "execute_code", "arguments": {"code": 1e999}}',
        '{"name": "execute_code", "arguments": {"code": "\\ud800"}}',
        '{"name": "\\udc00", "arguments": {"code": "x"}}',
        '{"name": "execute_code", "arguments": {"code": ' + "9" * 5000 + "}}",
        '{"name": "execute_code", "arguments": {"code": ' + "[" * 20_000 + "}}",
        '{"a":' * 20_000 + "1" + "}" * 20_000,
        "[]",
        "",
    ],
)
def test_a_malformed_call_stays_text(chat: ChatFormat, body: str) -> None:
    text = f"<tool_call>\n{body}\n</tool_call>"
    found = parse(chat, text + "<|im_end|>")
    assert found.tool_calls == () and found.content == text


def test_several_calls_and_words_around_them(chat: ChatFormat) -> None:
    one = '<tool_call>\n{"name": "a", "arguments": {"n": 1}}\n</tool_call>'
    found = parse(chat, f"first\n{one}{one.replace('1', '2')}<|im_end|>")
    assert found.content == "first"
    assert [call.arguments["n"] for call in found.tool_calls] == [1, 2]


def test_a_turn_that_was_cut_off_is_text(chat: ChatFormat) -> None:
    assert parse(chat, '<tool_call>\n{"name": "a", "argu').tool_calls == ()


def test_a_name_is_one_token_wherever_it_stands(chat: ChatFormat) -> None:
    (name,) = {tuple(chat.tokenizer("kestrel", add_special_tokens=False)["input_ids"])}
    text = chat.tokenizer('{"x": "kestrel"}, kestrel.', add_special_tokens=False)["input_ids"]
    assert str(text).count(str(list(name))[1:-1]) == 2


def test_tools_reach_templates_that_show_them(tokenizer: Any) -> None:
    other = copy(tokenizer)
    other.chat_template = "{{ tools | tojson }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
    from bat_core.rollout.tool_loop import EXECUTE_CODE

    ids = ChatFormat(other, [EXECUTE_CODE]).prompt_ids([Message(role="user", content="hi")])
    shown = json.loads(other.decode(ids).split("]hi")[0] + "]")
    assert shown[0]["function"]["name"] == "execute_code"


def test_a_tokenizer_without_a_template_is_refused(tokenizer: Any) -> None:
    bare = copy(tokenizer)
    bare.chat_template = None
    with pytest.raises(CheckpointError, match="has no chat template; choose an instruction-tuned policy"):
        ChatFormat(bare)


def test_a_template_that_rewrites_history_is_refused(tokenizer: Any) -> None:
    other = copy(tokenizer)
    other.chat_template = "{{ messages | length }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
    with pytest.raises(CheckpointError, match="the chat template rewrites history"):
        ChatFormat(other).target_ids(Message(role="assistant", content="x"))
