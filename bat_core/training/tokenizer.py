"""A tokenizer for a tiny policy, trained in place on the conversations of its domain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

TEMPLATE = (
    "{%- for m in messages -%}"
    "{%- if m['role'] == 'assistant' -%}"
    "<|im_start|>assistant{{ '\n' }}{% generation %}"
    "{%- if m['tool_calls'] -%}"
    "{%- for c in m['tool_calls'] -%}"
    '<tool_call>\n{"name": "{{ c[\'function\'][\'name\'] }}", "arguments": '
    "{{ c['function']['arguments'] | tojson }}}\n</tool_call>"
    "{%- endfor -%}"
    "{%- else -%}{{ m['content'] }}{%- endif -%}"
    "<|im_end|>{% endgeneration %}{{ '\n' }}"
    "{%- else -%}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>{{ '\n' }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant{{ '\n' }}{%- endif -%}"
)
"""ChatML with Hermes tool calls: the format that Qwen models and `transformers serve` speak."""

SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
FORM = (
    "\n<|im_start|>assistant\n",
    "\n<|im_start|>tool\n",
    "\n<|im_start|>user\n",
    '<tool_call>\n{"name": "',
    '"}}\n</tool_call>',
)
"""The form of a conversation, one token each: sequences half as long, and nothing to get wrong in between."""


def train_tokenizer(texts: Iterable[str], names: Sequence[str], phrases: Sequence[str], vocabulary: int) -> Any:
    """Return a byte-level BPE tokenizer with the chat template.

    Args:
        texts: Rendered conversations.
        names: Opaque words, cut out whole so that the same name is the same token everywhere.
        phrases: Fixed texts of the contract (goals, criteria), one token each.
        vocabulary: Target size; phrases come on top.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE(unk_token=None, byte_fallback=False))
    whole = "|".join([re.escape(name) for name in sorted(names, key=len, reverse=True)] + ["[0-9A-Z]"])
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(whole), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    fixed = sorted(set(phrases), key=lambda phrase: (-len(phrase), phrase))
    cuts = re.compile("|".join(re.escape(cut) for cut in [*FORM, *SPECIAL, *fixed]))
    bpe.train_from_iterator((part for text in texts for part in cuts.split(text) if part), trainer)
    bpe.add_tokens([AddedToken(phrase, normalized=False) for phrase in [*FORM, *fixed]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token=SPECIAL[0], eos_token=SPECIAL[2], padding_side="left"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer
