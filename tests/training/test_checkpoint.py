from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from bat_core.config.schema import PolicyConfig
from bat_core.errors import CheckpointError
from bat_core.model.training import PolicyRef
from bat_core.training.checkpoint import digest_folder, load, refer, save, verify
from bat_core.training.tiny import tiny_model


def test_what_was_saved_is_loaded_again(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    policy = save(model, tokenizer, tmp_path / "p")
    assert policy == refer(tmp_path / "p") and Path(policy.path) == tmp_path / "p"
    again, words = load(policy)
    ids = torch.tensor([[5, 6, 7]])
    assert torch.equal(model(ids).logits, again(ids).logits)
    text = 'kestrel {"x": "kestrels"} Do it well.<|im_end|>'
    assert words(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert words.chat_template == tokenizer.chat_template
    assert (words.eos_token_id, words.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)


def test_a_policy_is_its_weights_and_its_words_wherever_it_lies(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    one, other = save(model, tokenizer, tmp_path / "a"), save(model, tokenizer, tmp_path / "b" / "c")
    assert one.digest == other.digest
    (tmp_path / "a" / "notes.txt").write_text("not part of it")
    assert digest_folder(tmp_path / "a") == one.digest
    with torch.no_grad():
        next(model.parameters()).add_(0.001)
    assert save(model, tokenizer, tmp_path / "a").digest != one.digest


def test_a_damaged_or_missing_policy_is_named(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    policy = save(model, tokenizer, tmp_path / "p")
    weights = tmp_path / "p" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(
        CheckpointError, match=r"the checkpoint .*/p is damaged or missing: digest sha256:\w+, expected"
    ):
        load(policy)
    with pytest.raises(CheckpointError, match="digest missing, expected"):
        verify(PolicyRef(path=str(tmp_path / "none"), digest=policy.digest))
    with pytest.raises(CheckpointError, match="holds no safetensors weights; name a complete policy folder"):
        refer(tmp_path)


def test_a_half_written_policy_never_stands_under_its_name(tokenizer: Any, model: Any, tmp_path: Path) -> None:
    class Breaks:
        def save_pretrained(self, folder: Path) -> None:
            (folder / "model.safetensors").write_bytes(b"half")
            raise OSError("the disk is full")

    old = save(model, tokenizer, tmp_path / "p")
    with pytest.raises(OSError, match="full"):
        save(Breaks(), tokenizer, tmp_path / "p")
    verify(old)
    verify(save(model, tokenizer, tmp_path / "p"))
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_the_same_seed_gives_the_same_tiny_model(tokenizer: Any) -> None:
    policy = PolicyConfig(hidden=16, layers=1, heads=2, vocabulary=320, context=128)
    one, same, other = (tiny_model(tokenizer, policy, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
