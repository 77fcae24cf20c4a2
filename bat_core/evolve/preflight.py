"""Opening the leakage preflight: the checker process fetches the held-out items itself."""

from __future__ import annotations

from pathlib import Path

from bat_core import registry
from bat_core.config.schema import Config
from bat_core.errors import ConfigError
from bat_core.evaluate.server import heldout_items
from bat_core.evolve.directory import RunDirectory
from bat_core.evolve.settings import evaluator_settings
from bat_core.leakage.client import Preflight
from bat_core.leakage.keys import read_key
from bat_core.leakage.overrides import Override, read_overrides
from bat_core.leakage.remote import RemotePreflight

SOURCE = f"{heldout_items.__module__}:{heldout_items.__name__}"


def open_preflight(config: Config, run: RunDirectory) -> Preflight:
    """Return a preflight against the domain's held-out and blind suites with every installed rule.

    Raises:
        ConfigError: A socket is named without the key of its receipts.
    """
    if config.leakage.socket is not None:
        if config.leakage.receipt_key is None:
            raise ConfigError("leakage.socket is set without leakage.receipt_key", remedy="name the key file, too")
        return RemotePreflight(Path(config.leakage.socket), read_key(Path(config.leakage.receipt_key)))
    suites = {
        "heldout": evaluator_settings(config, run, "heldout"),
        "blind": evaluator_settings(config, run, "blind"),
    }
    rules = [found.target for found in registry.installed("leakage_rules")]
    return Preflight(SOURCE, {"domain": config.domain, "settings": suites}, rules=rules)


def overrides_of(config: Config) -> dict[str, Override]:
    """Return the samples that the configuration admits although a rule fired."""
    return read_overrides(Path(config.leakage.overrides)) if config.leakage.overrides else {}
