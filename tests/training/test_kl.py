from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from bat_core.config.schema import PolicyConfig
from bat_core.rollout.episode import Tokens
from bat_core.training.kl import divergence
from bat_core.training.tiny import tiny_model


def sample(seed: int, turns: int = 3) -> Tokens:
    rng = random.Random(seed)
    tokens = Tokens([rng.randrange(3, 300) for _ in range(rng.randrange(1, 9))])
    for _ in range(turns):
        mine = [rng.randrange(3, 300) for _ in range(rng.randrange(1, 6))]
        tokens.add(mine, [-1.0] * len(mine))
        tokens.add([rng.randrange(3, 300) for _ in range(rng.randrange(0, 4))])
    return tokens


@pytest.fixture
def other(tokenizer: Any) -> Any:
    policy = PolicyConfig(hidden=16, layers=1, heads=2, vocabulary=320, context=256)
    return tiny_model(tokenizer, policy, seed=9)


def plain(policy: Any, reference: Any, samples: list[Tokens], temperature: float) -> tuple[float, float]:
    """KL token by token: sum over the vocabulary of p log(p / q), and r - 1 - log r with r = q / p."""
    exact = k3 = 0.0
    count = 0
    for tokens in samples:
        ids = tokens.prompt + tokens.completion
        for place, mine in enumerate(tokens.mask):
            if not mine:
                continue
            at = len(tokens.prompt) + place
            with torch.no_grad():
                p = torch.softmax(policy(torch.tensor([ids[:at]])).logits[0, -1].double() / temperature, -1)
                q = torch.softmax(reference(torch.tensor([ids[:at]])).logits[0, -1].double() / temperature, -1)
            exact += float(sum(p * (p / q).log()))
            ratio = float(q[ids[at]] / p[ids[at]])
            k3 += ratio - 1 - float(torch.tensor(ratio).double().log())
            count += 1
    return exact / count, k3 / count


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_kl_is_that_of_the_plain_sum(model: Any, other: Any, temperature: float) -> None:
    samples = [sample(seed) for seed in range(4)]
    found = divergence(model.eval(), other.eval(), samples, temperature)
    exact, k3 = plain(model, other, samples, temperature)
    assert found.exact == pytest.approx(exact, rel=1e-4) and exact > 0
    assert found.k3 == pytest.approx(k3, rel=1e-4) and k3 > 0


def test_a_policy_does_not_differ_from_itself(model: Any) -> None:
    found = divergence(model.eval(), model, [sample(1)], 0.7)
    assert found.exact == pytest.approx(0, abs=1e-12) and found.k3 == pytest.approx(0, abs=1e-12)


def test_where_nothing_was_sampled_there_is_no_kl(model: Any, other: Any) -> None:
    silent = Tokens([4, 5, 6])
    silent.add([7, 8])
    assert divergence(model, other, [silent], 1.0) == (None, None)
    assert divergence(model, other, [], 1.0) == (None, None)
    one = sample(3)
    assert divergence(model.eval(), other.eval(), [silent, one], 1.0) == divergence(model, other, [one], 1.0)


def test_tokens_of_others_are_marked(model: Any) -> None:
    tokens = Tokens([1, 2])
    tokens.add([3, 4], [-0.1, -0.2])
    tokens.add([5])
    assert (tokens.completion, tokens.mask, tokens.logprobs) == ([3, 4, 5], [1, 1, 0], [-0.1, -0.2, 0.0])
    assert tokens.total == 5
