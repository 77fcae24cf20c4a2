from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bat_core.model.message import Message, ToolCall
from bat_core.model.training import Slice
from bat_core.rollout.chat import ChatFormat
from bat_core.training.sft import IGNORED, slice_row
from bat_core.training.tokenizer import SPECIAL

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def ids(tokenizer: Any, text: str) -> list[int]:
    found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


@QUICK
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_survives(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(ids(tokenizer, text)) == text


def test_names_are_cut_out_whole_the_longest_first(tokenizer: Any) -> None:
    (name,) = {tuple(ids(tokenizer, "kestrels"))}
    assert ids(tokenizer, "(kestrels)")[1:-1] == list(name)
    assert ids(tokenizer, "a-kestrels-b")[2 : 2 + len(name)] == list(name)
    assert ids(tokenizer, "kestrel") != list(name)


def test_fixed_texts_and_marks_are_one_token(tokenizer: Any) -> None:
    for text in ("Do it well.", *SPECIAL):
        assert len(ids(tokenizer, text)) == 1
        assert len(ids(tokenizer, f"x{text}y")) == 3


def test_digits_stand_alone(tokenizer: Any) -> None:
    assert len(ids(tokenizer, "1234")) == 4


SLICE = Slice(
    id="s",
    trajectory="t",
    stage="A",
    messages=(
        Message(role="user", content="Go on."),
        Message(role="assistant", tool_calls=(ToolCall(name="execute_code", arguments={"code": "1"}),)),
        Message(role="tool", name="execute_code", content="1"),
    ),
    target=Message(role="assistant", content="stage done"),
)


def test_loss_falls_on_the_experts_action_only(chat: ChatFormat) -> None:
    row = slice_row(chat, SLICE, 256)
    assert row is not None and len(row["input_ids"]) == len(row["labels"])
    learnt = [i for i in row["labels"] if i != IGNORED]
    assert chat.tokenizer.decode(learnt) == "stage done<|im_end|>"
    assert row["input_ids"][-len(learnt) :] == learnt
    assert row["input_ids"][: -len(learnt)] == chat.prompt_ids(SLICE.messages)


def test_a_slice_that_does_not_fit_is_rejected_and_never_clipped(chat: ChatFormat) -> None:
    row = slice_row(chat, SLICE, 256)
    assert row is not None
    length = len(row["input_ids"])
    assert slice_row(chat, SLICE, length) == row
    assert slice_row(chat, SLICE, length - 1) is None
