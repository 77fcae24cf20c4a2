"""Comparing texts by meaning with an encoder model. For people to look at: no threshold separates, so never a gate."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bat_core.errors import LeakageError
from bat_core.leakage.heldout_file import read_heldout
from bat_core.model.base import JsonObject

LIKE = 0.92
"""Cosine from which a pair is worth a look."""
MOST = 50
_BATCH = 32
_LENGTH = 256


def alike(texts: Iterable[tuple[str, str]], heldout: Path, encoder: Path) -> list[JsonObject]:
    """Return the pairs of a training text and a held-out item that mean nearly the same, the nearest first.

    Raises:
        LeakageError: The model can't be loaded.
    """
    items = [item for item in read_heldout(heldout) if item.kind in ("text", "answer", "trace")]
    samples = list({text: (name, text) for name, text in texts}.values())
    if not items or not samples:
        return []
    model = _Encoder(encoder)
    theirs, ours = model.encode([item.text for item in items]), model.encode([text for _, text in samples])
    nearest, which = (ours @ theirs.T).max(dim=1)
    pairs = [
        {"id": samples[at][0], "item_id": items[item].item_id, "likeness": round(likeness, 3)}
        for at, (likeness, item) in enumerate(zip(nearest.tolist(), which.tolist(), strict=True))
        if likeness >= LIKE
    ]
    return sorted(pairs, key=lambda pair: -float(str(pair["likeness"])))[:MOST]


class _Encoder:
    """Mean-pooled, normalised hidden states of an encoder."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        try:
            self._tokenizer = AutoTokenizer.from_pretrained(folder)
            self._model = AutoModel.from_pretrained(folder).eval()
        except (OSError, ValueError, ImportError) as error:
            raise LeakageError(
                f"can't load an encoder from {folder} ({type(error).__name__})", remedy="give the folder of one"
            ) from error
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token

    def encode(self, texts: list[str]) -> Any:
        """Return one unit vector for each text."""
        import torch

        parts = []
        with torch.no_grad():
            for start in range(0, len(texts), _BATCH):
                batch = self._tokenizer(
                    texts[start : start + _BATCH],
                    padding=True,
                    truncation=True,
                    max_length=_LENGTH,
                    return_tensors="pt",
                )
                hidden = self._model(**batch).last_hidden_state
                mask = batch["attention_mask"].unsqueeze(-1)
                parts.append(torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1))
        return torch.cat(parts)
