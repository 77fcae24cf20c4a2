"""Policies on disk: loading, atomic saving, digests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from bat_core.errors import CheckpointError
from bat_core.model.base import digest_of
from bat_core.model.training import PolicyRef

IDENTITY = ("*.safetensors", "tokenizer.json", "chat_template.jinja", "adapter_config.json")
"""Files whose bytes make up a policy's identity."""


def digest_folder(folder: Path) -> str:
    """Return the digest of a policy's weights, tokenizer and chat template."""
    files = sorted(path for pattern in IDENTITY for path in folder.glob(pattern))
    return digest_of([[path.name, digest_of(path.read_bytes())] for path in files])


def refer(folder: Path) -> PolicyRef:
    """Return a reference to the policy in `folder`.

    Raises:
        CheckpointError: If it holds no weights.
    """
    if not any(folder.glob("*.safetensors")):
        raise CheckpointError(f"{folder} holds no safetensors weights", remedy="name a complete policy folder")
    return PolicyRef(path=str(folder), digest=digest_folder(folder))


def verify(policy: PolicyRef) -> None:
    """Raise `CheckpointError` if the policy's files are not what its reference says."""
    folder = Path(policy.path)
    found = digest_folder(folder) if folder.is_dir() else "missing"
    if found != policy.digest:
        raise CheckpointError(
            f"the checkpoint {folder} is damaged or missing: digest {found[:19]}, expected {policy.digest[:19]}",
            remedy="remove the run's folder from that round on, or restore it, and run again",
        )


def load(policy: PolicyRef, device: str = "cpu", *, bf16: bool = False) -> tuple[Any, Any]:
    """Return (model, tokenizer).

    Raises:
        CheckpointError: If the files are damaged or can't be loaded.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from bat_core.training.progress import quiet

    quiet()
    verify(policy)
    try:
        tokenizer = AutoTokenizer.from_pretrained(policy.path)
        model = AutoModelForCausalLM.from_pretrained(policy.path, dtype=torch.bfloat16 if bf16 else torch.float32)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).splitlines()[0]
        raise CheckpointError(f"can't load the policy {policy.path}: {first}", remedy="check the folder") from error
    return model.to(device), tokenizer


def save(model: Any, tokenizer: Any, folder: Path) -> PolicyRef:
    """Save into `folder`, which appears only when complete; one that exists is replaced."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return refer(folder)
