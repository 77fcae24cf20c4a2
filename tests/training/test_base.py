from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bat_core.bank.store import read
from bat_core.config.schema import PolicyConfig
from bat_core.model.message import Message, ToolCall
from bat_core.model.training import PolicyRef
from bat_core.registry import load_domain
from bat_core.rollout.chat import ChatFormat
from bat_core.training.base import (
    DIGITS,
    SHORT,
    Words,
    conversation_row,
    curriculum,
    exchanged,
    phrases,
    recipe_digest,
    single_tokens,
)
from bat_core.training.checkpoint import load
from bat_core.training.copying import write_what_is_read
from bat_core.training.pretrain import run_pretraining
from bat_core.training.sft import IGNORED
from bat_core.training.tiny import tiny_model

NONE = Words([], [])


@pytest.fixture(scope="module")
def loaded(tiny_base: PolicyRef) -> tuple[Any, Any]:
    return load(tiny_base)


def call(code: str) -> Message:
    arguments = {"language": "python", "code": code}
    return Message(role="assistant", tool_calls=(ToolCall(name="execute_code", arguments=arguments),))


def test_a_base_is_a_policy_like_any_other(
    tiny_base: PolicyRef, loaded: tuple[Any, Any], small_policy: PolicyConfig
) -> None:
    model, tokenizer = loaded
    assert (model.config.hidden_size, model.config.num_hidden_layers) == (small_policy.hidden, small_policy.layers)
    assert len(tokenizer) <= model.config.vocab_size < len(tokenizer) + 32
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    text = "phx.card('amber')"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    left = {path.name for path in Path(tiny_base.path).parent.iterdir()}
    assert left == {"base", "store"}, "no scratch is left behind"


def test_the_chat_format_of_a_base_round_trips(loaded: tuple[Any, Any], small_run: Path) -> None:
    chat = ChatFormat(loaded[1])
    said = [one.target for one in read(small_run / "bank").slices]
    for message in {message.model_dump_json(): message for message in said}.values():
        ids = chat.target_ids(message)
        assert ids[-1] == chat.eos and chat.parse(ids) == message
    one = read(small_run / "bank").slices[0]
    learnt = chat.prompt_ids(one.messages) + chat.target_ids(one.target)
    whole = chat.prompt_ids([*one.messages, one.target, Message(role="tool", name="execute_code", content="x")])
    assert whole[: len(learnt)] == learnt, "what is learnt is what is asked for later"


def test_what_the_contract_always_says_is_one_token_each(loaded: tuple[Any, Any]) -> None:
    tokenizer = loaded[1]
    domain = load_domain("medimaging")
    fixed = phrases(domain)
    assert {stage.goal for stage in domain.contract().stages()} <= set(fixed) and fixed == sorted(set(fixed))
    longest = [text for text in fixed if not any(text != other and text in other for other in fixed)]
    assert [text for text in longest if len(tokenizer(text, add_special_tokens=False)["input_ids"]) != 1] == []


def test_loss_falls_on_every_turn_of_the_expert_and_on_nothing_else(loaded: tuple[Any, Any]) -> None:
    chat = ChatFormat(loaded[1])
    talk = [Message(role="user", content="Go on."), call("phx.brief()"), Message(role="tool", content="1"), call("2")]
    row = conversation_row(chat, talk)
    learnt = [label for label in row["labels"] if label != IGNORED]
    assert learnt == chat.target_ids(talk[1]) + chat.target_ids(talk[3])
    assert all(label in (IGNORED, token) for token, label in zip(row["input_ids"], row["labels"], strict=True))


def test_words_of_one_token_are_found(loaded: tuple[Any, Any]) -> None:
    names = load_domain("medimaging").names()
    ids = single_tokens(loaded[1], names)
    assert {loaded[1].decode([token]) for token in ids} <= set(names)
    assert len(ids) == len(set(ids)) > 20
    assert [loaded[1].decode([token]) for token in single_tokens(loaded[1], DIGITS)] == list(DIGITS)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.sets(st.integers(0, 20), min_size=2), st.integers(0))
def test_names_are_exchanged_consistently(ids: list[int], names: set[int], seed: int) -> None:
    row = {"input_ids": ids, "labels": [token if n % 2 else IGNORED for n, token in enumerate(ids)]}
    out = exchanged(row, Words(sorted(names), []), random.Random(seed))
    became: dict[int, int] = {}
    for before, after in zip(ids, out["input_ids"], strict=True):
        assert became.setdefault(before, after) == after
        assert (after in names) == (before in names) and (before in names or before == after)
    assert len(set(became.values())) == len(became), "no two names become one"
    assert out["labels"] == [t if n % 2 else IGNORED for n, t in enumerate(out["input_ids"])]


def test_digits_are_exchanged_among_themselves_in_half_of_the_rows() -> None:
    row = {"input_ids": [1, 2, 3, 50, 60, 2], "labels": [IGNORED] * 6}
    rng = random.Random(0)
    many = [exchanged(row, Words([50, 60, 70], [1, 2, 3, 4]), rng)["input_ids"] for _ in range(400)]
    assert all(set(ids[:3]) <= {1, 2, 3, 4} and ids[1] == ids[5] and set(ids[3:5]) <= {50, 60, 70} for ids in many)
    kept = sum(ids[:3] == [1, 2, 3] for ids in many) / len(many)
    assert abs(kept - (0.5 + 0.5 / 24)) < 0.08


def test_rows_are_drawn_in_proportion_to_what_they_teach() -> None:
    rows = [{"input_ids": [n] * 4, "labels": [n] * taught + [IGNORED] * (4 - taught)} for n, taught in ((0, 1), (1, 3))]
    drawn = [row["input_ids"][0] for row in curriculum(rows, NONE, PolicyConfig(steps=200, batch=4), random.Random(0))]
    assert abs(sum(drawn) / len(drawn) - 0.75) < 0.05


def test_a_lesson_begins_with_short_pieces_and_is_the_same_for_the_same_seed() -> None:
    rows = [{"input_ids": list(range(1000)), "labels": list(range(1000))}]
    policy = PolicyConfig(steps=40, batch=3)

    def lesson() -> Sequence[dict[str, list[int]]]:
        return curriculum(rows, NONE, policy, random.Random(1))

    lengths = [len(row["input_ids"]) for row in lesson()]
    assert len(lengths) == 40 * 3 and lesson() == lesson()
    until, short = SHORT[0]
    assert set(lengths[: round(until * 40) * 3]) == {short}
    assert set(lengths[round(SHORT[-1][0] * 40) * 3 :]) == {1000}


def test_attention_begins_by_writing_out_what_it_attends_to(tokenizer: Any) -> None:
    import torch

    model = tiny_model(tokenizer, PolicyConfig(hidden=16, layers=3, heads=2), 0)
    write_what_is_read(model, 5)
    seen = torch.randn(4, 16)
    for layer in model.model.layers:
        attention = layer.self_attn
        assert torch.allclose(attention.o_proj(attention.v_proj(seen)), seen, atol=1e-5)
    first, second = (model.model.layers[n].self_attn.v_proj.weight for n in (0, 1))
    assert not torch.allclose(first, second), "each layer has a rotation of its own"


def test_pretraining_sees_the_rows_in_their_order_and_learns(tokenizer: Any, tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(1)
    policy = PolicyConfig(hidden=16, layers=1, heads=2, steps=30, batch=2, lr=1e-2)
    model = tiny_model(tokenizer, policy, 0)
    ids = tokenizer("Go on.<|im_end|>")["input_ids"] * 3
    metrics: list[tuple[int, int, dict[str, Any]]] = []
    rows = [{"input_ids": ids, "labels": ids}] * 60
    run_pretraining(model, tokenizer, rows, policy, tmp_path / "s", lambda d, t, m: metrics.append((d, t, m)))
    losses = [m["loss"] for _, _, m in metrics if m]
    assert metrics[-1][:2] == (30, 30) and losses[-1] < losses[0]


def test_a_recipe_has_its_own_digest() -> None:
    one = recipe_digest("medimaging", "1", PolicyConfig())
    assert one == recipe_digest("medimaging", "1", PolicyConfig(base="elsewhere"))
    changed = [("medimaging", "2", PolicyConfig()), ("x", "1", PolicyConfig()), ("medimaging", "1", PolicyConfig(lr=1))]
    assert len({one, *(recipe_digest(*words) for words in changed)}) == 4
