"""The cold start's examples as token ids: loss on the expert's action alone, whole or not at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bat_core.bank.place import Place
from bat_core.bank.store import read
from bat_core.bank.tables import parquet
from bat_core.model.base import JsonObject, canonical_json, digest_of
from bat_core.model.training import Slice
from bat_core.rollout.chat import ChatFormat

IGNORED = -100


@dataclass
class Supervised:
    """Rows of a split, and what was left out."""

    train: list[JsonObject] = field(default_factory=list)
    validation: list[JsonObject] = field(default_factory=list)
    rejected: list[JsonObject] = field(default_factory=list)


def held_out(trajectories: Sequence[str], share: float, seed: int) -> set[str]:
    """Return the trajectories kept for validation: a seeded choice, at least one where a share is asked for."""
    order = sorted(set(trajectories))
    random.Random(seed).shuffle(order)
    count = round(share * len(order))
    return set(order[: max(count, 1 if share and len(order) > 1 else 0)])


def tokenized(slices: Sequence[Slice], chat: ChatFormat, max_tokens: int, share: float, seed: int) -> Supervised:
    """Return all slices as rows. One that does not fit is rejected with its length; nothing is clipped."""
    made = Supervised()
    held = held_out([one.trajectory for one in slices], share, seed)
    for one in slices:
        prompt, target = chat.prompt_ids(one.messages), chat.target_ids(one.target)
        row: JsonObject = {"id": one.id, "trajectory": one.trajectory, "stage": one.stage, "source": one.source}
        if len(prompt) + len(target) > max_tokens:
            made.rejected.append({**row, "tokens": len(prompt) + len(target)})
            continue
        row |= {"slice": digest_of(one), "input_ids": prompt + target, "labels": [IGNORED] * len(prompt) + target}
        (made.validation if one.trajectory in held else made.train).append(row)
    return made


def export(bank: str, policy: Path, output: Path, max_tokens: int, share: float, seed: int) -> JsonObject:
    """Write train, validation and rejected rows as parquet, and a manifest that names what they were made from."""
    from transformers import AutoTokenizer

    from bat_core.errors import CheckpointError

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(policy))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{policy} holds no tokenizer", remedy="name a policy's folder") from error
    found = read(bank)
    chat = ChatFormat(tokenizer)  # as the trainer renders prompts
    made, place = tokenized(found.slices, chat, max_tokens, share, seed), Place(output)
    counts: JsonObject = {}
    for name, rows in vars(made).items():
        place.write(f"{name}.parquet", parquet(rows, _schema(rejected=name == "rejected")))
        counts[name] = len(rows)
    made_from = {"bank": found.report.digest, **digests(tokenizer), "max_tokens": max_tokens}
    manifest = {**counts, **made_from, "validation_share": share, "seed": seed}
    place.write("manifest.json", canonical_json(manifest).encode())
    return manifest


def digests(tokenizer: Any) -> dict[str, str]:
    """Return the digests of a tokenizer (vocabulary, merges, normalisers, special tokens) and of its chat template."""
    special = {name: str(token) for name, token in sorted(tokenizer.special_tokens_map.items())}
    return {
        "tokenizer": digest_of([tokenizer.backend_tokenizer.to_str(), special]),
        "template": digest_of(str(tokenizer.chat_template).encode()),
    }


def _schema(*, rejected: bool) -> Any:
    import pyarrow as pa

    texts = {name: pa.string() for name in ("id", "trajectory", "stage", "source")}
    if rejected:
        return pa.schema({**texts, "tokens": pa.int64()})
    ids = pa.list_(pa.int64())
    return pa.schema({**texts, "slice": pa.string(), "input_ids": ids, "labels": ids})
