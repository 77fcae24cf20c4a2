"""Muon for the matrices between the layers, AdamW for the rest, as one optimizer.

Muon (Jordan et al., 2024) orthogonalises a matrix's momentum before it is applied. Embeddings and norms are no maps
between layers and stay with AdamW; were the norms' weights left out, attention could never become sharp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

OTHERS = 0.15
"""AdamW's learning rate as a share of Muon's."""


class MuonAndAdamW(torch.optim.Optimizer):  # type: ignore[misc]
    """Both optimizers behind one step and one schedule.

    Args:
        model: A causal LM with `embed_tokens`.
        lr: Of Muon.
        weight_decay: Of both.
    """

    def __init__(self, model: torch.nn.Module, lr: float, weight_decay: float) -> None:
        matrices: list[torch.nn.Parameter] = []
        others: list[torch.nn.Parameter] = []
        for name, parameter in model.named_parameters():
            between = parameter.ndim == 2 and "embed_tokens" not in name and "lm_head" not in name
            (matrices if between else others).append(parameter)
        self.parts = (
            torch.optim.Muon(matrices, lr=lr, weight_decay=weight_decay, adjust_lr_fn="original"),
            torch.optim.AdamW(others, lr=OTHERS * lr, betas=(0.9, 0.98), weight_decay=weight_decay),
        )
        groups = [{"params": part.param_groups[0]["params"], "lr": part.defaults["lr"]} for part in self.parts]
        super().__init__(groups, {"lr": lr})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step of both, at the learning rates that the schedule has set here."""
        loss = closure() if closure is not None else None
        for group, part in zip(self.param_groups, self.parts, strict=True):
            part.param_groups[0]["lr"] = group["lr"]
            part.step()
        return loss
