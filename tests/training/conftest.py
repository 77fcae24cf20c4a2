from __future__ import annotations

from typing import Any

import pytest

from bat_core.config.schema import PolicyConfig
from bat_core.rollout.chat import ChatFormat
from bat_core.training.tiny import tiny_model
from bat_core.training.tokenizer import train_tokenizer

TEXT = (
    "<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n<tool_call>\n"
    '{"name": "execute_code", "arguments": {"language": "python", "code": "print(1)"}}\n</tool_call><|im_end|>\n'
    "<|im_start|>tool\n1<|im_end|>\n"
)
TINY = PolicyConfig(hidden=16, layers=1, heads=2, vocabulary=320, context=256)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return train_tokenizer([TEXT] * 3, ["kestrel", "kestrels"], ["Do it well."], 320)


@pytest.fixture(scope="session")
def chat(tokenizer: Any) -> ChatFormat:
    return ChatFormat(tokenizer)


@pytest.fixture
def model(tokenizer: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    return tiny_model(tokenizer, TINY, seed=0)
