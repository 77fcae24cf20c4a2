"""Opening the leakage preflight: the checker process fetches the held-out items itself."""

from __future__ import annotations

from bat_core import registry
from bat_core.config.schema import Config
from bat_core.evaluate.server import heldout_items
from bat_core.evolve.directory import RunDirectory
from bat_core.evolve.settings import evaluator_settings
from bat_core.leakage.client import Preflight

SOURCE = f"{heldout_items.__module__}:{heldout_items.__name__}"


def open_preflight(config: Config, run: RunDirectory) -> Preflight:
    """Return a preflight against the domain's held-out and blind suites with every installed rule."""
    suites = {
        "heldout": evaluator_settings(config, run, "heldout"),
        "blind": evaluator_settings(config, run, "blind"),
    }
    rules = [found.target for found in registry.installed("leakage_rules")]
    return Preflight(SOURCE, {"domain": config.domain, "settings": suites}, rules=rules)
