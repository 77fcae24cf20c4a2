from __future__ import annotations

from typing import Any

import pytest

from bat_core.config.schema import PolicyConfig
from bat_core.rollout.chat import ChatFormat
from bat_core.rollout.tool_loop import EXECUTE_CODE
from bat_core.training.tiny import tiny_model
from bat_core.training.tokenizer import train_tokenizer

TEXTS = [
    "<|im_start|>user\nGo on at stage A, please. The harbour is north of 7.<|im_end|>\n"
    "<|im_start|>assistant\n<tool_call>\n"
    '{"name": "execute_code", "arguments": {"language": "python", "code": "print(1 + 2)\\nx = \'a b\'"}}\n'
    "</tool_call><|im_end|>\n<|im_start|>tool\n3 of 4 lines, none of them é or 中<|im_end|>\n",
]
TINY = PolicyConfig(hidden=32, layers=2, heads=2, vocabulary=400, context=512)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return train_tokenizer(TEXTS * 4, ["kestrel", "lagoon"], ["Do it well."], 400)


@pytest.fixture(scope="session")
def chat(tokenizer: Any) -> ChatFormat:
    return ChatFormat(tokenizer, [EXECUTE_CODE], 512)


@pytest.fixture(scope="session")
def model(tokenizer: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    return tiny_model(tokenizer, TINY, seed=3).eval()
