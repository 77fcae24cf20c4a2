"""KL(theta || theta*) per token on the policy's own samples: exact over the vocabulary, and k3."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from bat_core.rollout.episode import Tokens


class Divergence(NamedTuple):
    """Means per sampled token, in nats; None if nothing was sampled."""

    exact: float | None
    k3: float | None

    @property
    def finite(self) -> bool:
        """Whether what was measured are finite numbers."""
        return all(value is None or math.isfinite(value) for value in self)


def divergence(policy: Any, reference: Any, samples: Sequence[Tokens], temperature: float) -> Divergence:
    """Measure how far `policy` is from `reference` on what `policy` sampled.

    Args:
        policy: theta.
        reference: theta*.
        samples: Rollouts sampled from `policy`.
        temperature: At which both distributions are taken.
    """
    exact = k3 = 0.0
    count = 0
    for tokens in samples:
        where = [i for i, mine in enumerate(tokens.mask) if mine]
        if not where:
            continue
        p = _logprobs(policy, tokens, where, temperature)
        q = _logprobs(reference, tokens, where, temperature)
        exact += float((p.exp() * (p - q)).sum())
        ids = _column(tokens, where, p.device)
        ratio = (q - p).gather(1, ids)[:, 0]
        k3 += float((ratio.exp() - ratio - 1).sum())
        count += len(where)
    return Divergence(exact / count, k3 / count) if count else Divergence(None, None)


def _column(tokens: Tokens, where: Sequence[int], device: Any) -> Any:
    import torch

    return torch.tensor([[tokens.completion[i]] for i in where], device=device)


def _logprobs(model: Any, tokens: Tokens, where: Sequence[int], temperature: float) -> Any:
    """Return log-probabilities over the vocabulary at the sampled positions, (len(where), V), in double precision."""
    import torch

    start = len(tokens.prompt)
    ids = torch.tensor([tokens.prompt + tokens.completion], device=model.device)
    with torch.inference_mode():
        body = model.get_base_model() if hasattr(model, "get_base_model") else model
        hidden = body.model(input_ids=ids, use_cache=False).last_hidden_state[0]
        logits = body.lm_head(hidden[[start + i - 1 for i in where]])
        return torch.log_softmax(logits.double() / temperature, -1)
