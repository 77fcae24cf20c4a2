"""An initialisation from which a tiny transformer learns to copy in minutes.

Most of what a tiny policy must do is to copy a name or a number from an observation into a call. From the usual
random start, a model of this size needs millions of tokens before attention copies anything at all. Here every
attention layer starts by writing out what it attends to, so that only *where* to look has to be learnt (in the spirit
of Trockman and Kolter, "Mimetic Initialization of Self-Attention Layers", 2023). No knowledge of a domain enters.
"""

from __future__ import annotations

from typing import Any

import torch


def write_what_is_read(model: Any, seed: int) -> None:
    """Set value and output projections of all layers to a rotation and its inverse, in place.

    Args:
        model: A causal LM with `v_proj` and `o_proj` and as many key-value heads as heads.
        seed: Of the rotations.
    """
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model.model.layers:
            attention = layer.self_attn
            width = attention.v_proj.weight.shape[1]
            rotation, _ = torch.linalg.qr(torch.randn(width, width, generator=random))
            attention.v_proj.weight.copy_(rotation)
            attention.o_proj.weight.copy_(rotation.T)
