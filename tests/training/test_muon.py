"""Two optimizers behind one step."""

from __future__ import annotations

from typing import Any

import torch

from bat_core.config.schema import PolicyConfig
from bat_core.training.muon import OTHERS, MuonAndAdamW
from bat_core.training.tiny import tiny_model


def stepped(tokenizer: Any, make: Any, lrs: tuple[float, ...]) -> dict[str, torch.Tensor]:
    """Return the weights after a step at each learning rate, all on the same tokens."""
    model = tiny_model(tokenizer, PolicyConfig(hidden=16, layers=1, heads=2), 0)
    optimizers = make(model)
    ids = torch.arange(40).reshape(2, 20)
    for lr in lrs:
        for optimizer, share in optimizers:
            optimizer.param_groups[0]["lr"] = share * lr
            if isinstance(optimizer, MuonAndAdamW):
                optimizer.param_groups[1]["lr"] = OTHERS * lr
        model.zero_grad()
        model(ids, labels=ids).loss.backward()
        for optimizer, _ in optimizers:
            optimizer.step()
    return {name: value.clone() for name, value in model.state_dict().items()}


def apart(model: Any) -> Any:
    """Return the two optimizers, each on its own, with their shares of the learning rate."""
    names = dict(model.named_parameters())
    matrices = [p for n, p in names.items() if n.endswith("proj.weight")]
    rest = [p for n, p in names.items() if not n.endswith("proj.weight")]
    muon = torch.optim.Muon(matrices, lr=0.01, weight_decay=0.1, adjust_lr_fn="original")
    return (muon, 1.0), (torch.optim.AdamW(rest, lr=0.01, betas=(0.9, 0.98), weight_decay=0.1), OTHERS)


def test_one_step_is_a_step_of_each_at_the_rates_that_are_set(tokenizer: Any) -> None:
    lrs = (0.02, 0.01, 0.0)
    together = stepped(tokenizer, lambda model: ((MuonAndAdamW(model, 0.02, 0.1), 1.0),), lrs)
    each = stepped(tokenizer, apart, lrs)
    begun = stepped(tokenizer, lambda model: (), ())
    for name, value in together.items():
        assert torch.allclose(value, each[name], atol=1e-6), name
        assert not torch.equal(value, begun[name]) or "lm_head" in name, f"{name} is not trained"


def test_a_schedule_reaches_both_through_the_groups_of_the_whole(tokenizer: Any) -> None:
    model = tiny_model(tokenizer, PolicyConfig(hidden=16, layers=1, heads=2), 0)
    optimizer = MuonAndAdamW(model, 0.02, 0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    optimizer.load_state_dict(optimizer.state_dict())  # as a launcher does that moves it to a device
    ids = torch.arange(20)[None]
    model(ids, labels=ids).loss.backward()
    for _ in range(2):
        optimizer.step()
        schedule.step()
    optimizer.step()
    assert [part.param_groups[0]["lr"] for part in optimizer.parts] == [0.02 / 4, OTHERS * 0.02 / 4]
