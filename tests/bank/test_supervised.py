"""The cold start's examples as token ids, with the shipped tiny policy's tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import datasets
import pytest
from transformers import AutoTokenizer

from bat_core.bank.store import Bank
from bat_core.bank.supervised import IGNORED, digests, export, held_out, tokenized
from bat_core.errors import CheckpointError
from bat_core.rollout.chat import ChatFormat

BASE = Path(__file__).parents[2] / "domains" / "medimaging" / "src" / "bat_medimaging" / "base"


@pytest.fixture(scope="module")
def chat() -> ChatFormat:
    return ChatFormat(AutoTokenizer.from_pretrained(str(BASE)))


def test_earlier_calls_stay_structured_and_the_closing_words_are_a_target(bank: Bank) -> None:
    closing = [one for one in bank.slices if not one.target.tool_calls]
    assert {one.target.content for one in closing if one.stage == "S3"} == {"stage done"}
    assert {one.stage for one in closing} == {"E2E", "S1", "S2", "S3", "S4", "S5"}
    for one in bank.slices:
        assert one.target.role == "assistant" and one.messages[0].role == "system"
        for message in one.messages:
            assert "<tool_call>" not in message.content
            if message.role == "tool":
                assert message.name == "execute_code"
        said = [message for message in one.messages if message.role == "assistant"]
        assert all(m.tool_calls or m.content for m in said)
    assert {one.source for one in bank.slices} <= {state.digest for state in bank.states}


def test_loss_falls_on_the_action_alone_and_what_is_too_long_is_rejected_whole(bank: Bank, chat: ChatFormat) -> None:
    made = tokenized(bank.slices, chat, 1 << 20, 0.2, seed=3)
    assert not made.rejected and len(made.train) + len(made.validation) == len(bank.slices)
    by_id = {row["id"]: row for row in (*made.train, *made.validation)}
    for one in bank.slices[:40]:
        row, target = by_id[one.id], chat.target_ids(one.target)
        assert row["labels"] == [IGNORED] * (len(row["labels"]) - len(target)) + target
        assert row["input_ids"] == chat.prompt_ids(one.messages) + target
    lengths = sorted(len(row["input_ids"]) for row in by_id.values())
    limit = lengths[len(lengths) // 2]
    short = tokenized(bank.slices, chat, limit, 0.2, seed=3)
    assert {row["id"] for row in short.rejected} == {i for i, r in by_id.items() if len(r["input_ids"]) > limit}
    assert all(row["tokens"] > limit for row in short.rejected)
    for row in (*short.train, *short.validation):
        assert row == by_id[row["id"]], "nothing is clipped"


def test_a_trajectory_is_on_one_side(bank: Bank, chat: ChatFormat) -> None:
    made = tokenized(bank.slices, chat, 1 << 20, 0.34, seed=1)
    sides = [{row["trajectory"] for row in rows} for rows in (made.train, made.validation)]
    assert not sides[0] & sides[1] and len(sides[1]) == 2
    names = [one.trajectory for one in bank.slices]
    assert held_out(names, 0.34, 1) == sides[1]
    assert len({frozenset(held_out(names, 0.34, seed)) for seed in range(6)}) > 1
    assert held_out(names, 0.0, 1) == set() and len(held_out(names, 0.01, 1)) == 1


def test_the_export_names_what_it_was_made_from(small_run: Path, bank: Bank, tmp_path: Path) -> None:
    made = export(str(small_run / "bank"), BASE, tmp_path / "sft", 700, 0.2, seed=0)
    again = export(str(small_run / "bank"), BASE, tmp_path / "again", 700, 0.2, seed=0)
    assert made == again == json.loads((tmp_path / "sft" / "manifest.json").read_text())
    assert made["bank"] == bank.report.digest and made["train"] + made["validation"] + made["rejected"] == len(
        bank.slices
    )
    tokenizer = AutoTokenizer.from_pretrained(str(BASE))
    assert digests(tokenizer) == {key: made[key] for key in ("tokenizer", "template")}
    tokenizer.chat_template += " "
    assert digests(tokenizer)["template"] != made["template"] and digests(tokenizer)["tokenizer"] == made["tokenizer"]
    for name in ("train", "validation", "rejected"):
        if made[name] == 0:
            continue  # `datasets` loads no empty split, whoever wrote it
        file = str(tmp_path / "sft" / f"{name}.parquet")
        rows = datasets.load_dataset("parquet", data_files=file, split="train", cache_dir=str(tmp_path)).to_list()
        assert len(rows) == made[name]
        if name != "rejected":
            assert set(rows[0]["labels"][:1]) == {IGNORED} and rows[0]["slice"].startswith("sha256:")
    with pytest.raises(CheckpointError, match="holds no tokenizer"):
        export(str(small_run / "bank"), tmp_path, tmp_path / "x", 10, 0.2, seed=0)
