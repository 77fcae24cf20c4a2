"""A tiny Qwen3-architecture policy from a configuration."""

from __future__ import annotations

from typing import Any

from bat_core.config.schema import PolicyConfig


def tiny_model(tokenizer: Any, policy: PolicyConfig, seed: int) -> Any:
    """Return a randomly initialised model for `tokenizer`; the same seed gives the same weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=-(-len(tokenizer) // 32) * 32,
        hidden_size=policy.hidden,
        num_hidden_layers=policy.layers,
        num_attention_heads=policy.heads,
        num_key_value_heads=policy.heads,
        head_dim=policy.hidden // policy.heads,
        intermediate_size=policy.hidden * 3,
        max_position_embeddings=policy.context,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        initializer_range=0.04,
    )
    model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model
