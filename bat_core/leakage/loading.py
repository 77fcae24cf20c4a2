"""Loading what a name stands for: rules and sources are named, since names travel and objects don't."""

from __future__ import annotations

import importlib
from typing import Any

from bat_core.errors import LeakageError
from bat_core.hooks.leakage_rule import LeakageRule


def load(spec: str) -> Any:
    """Return what `module:name` stands for.

    Raises:
        LeakageError: It can't be imported or isn't there.
    """
    module, _, name = spec.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise LeakageError(f"the checker can't load {spec}", remedy="check the name and what is installed") from error


def load_rule(spec: str) -> LeakageRule:
    """Return a rule by its class.

    Raises:
        LeakageError: It is none.
    """
    rule = load(spec)()
    if not isinstance(rule, LeakageRule):
        raise LeakageError(f"{spec} is not a LeakageRule", remedy="name a class that derives from it")
    return rule
