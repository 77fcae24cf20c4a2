"""Finding the policy to start from: named, shipped by the domain, cached, or built."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from bat_core.config.schema import Config
from bat_core.errors import CheckpointError
from bat_core.executors import LocalExecutor
from bat_core.hooks.domain import Domain
from bat_core.model.training import PolicyRef
from bat_core.rollout.lab import LabSpec

Progress = Callable[[str, int, int], None]


def cache_folder() -> Path:
    """Return where built bases are kept: `BAT_CACHE`, else the user's cache."""
    home = os.environ.get("BAT_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "bat-core"
    return Path(home).expanduser()


def base_policy(config: Config, domain: Domain, lab: LabSpec, digest: str, progress: Progress) -> PolicyRef:
    """Return the policy before the cold start.

    Args:
        config: Names it, or says `domain`.
        domain: May ship one.
        lab: Where expert logs are made, if one has to be built.
        digest: Of the domain's package: a base built from other logs is another base.
        progress: Called with (phase, done, total).

    Raises:
        CheckpointError: If a named folder holds no policy.
    """
    from bat_core.training.checkpoint import refer

    if config.policy.base != "domain":
        return refer(_fetched(config.policy.base))
    shipped = domain.base()
    if shipped is not None:
        return refer(shipped)
    return built_base(config, domain, lab, digest, progress)


def built_base(config: Config, domain: Domain, lab: LabSpec, digest: str, progress: Progress) -> PolicyRef:
    """Return the tiny base built from the domain's expert logs, from the cache if it is there."""
    from bat_core.training.base import build_base, recipe_digest
    from bat_core.training.checkpoint import refer

    folder = cache_folder() / "bases" / recipe_digest(config.domain, digest, config.policy)[7:39]
    if folder.is_dir():
        return refer(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    executor = LocalExecutor(config.bank.workers)
    try:
        return build_base(domain, config.policy, lab, executor, folder, progress)
    finally:
        executor.close()


def _fetched(name: str) -> Path:
    """Return the local folder of a policy, downloaded by name where it isn't a folder."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        first = str(error).splitlines()[0]
        remedy = "download it first and name the folder"
        raise CheckpointError(
            f"policy.base={name!r} is no folder and can't be fetched: {first}", remedy=remedy
        ) from error
