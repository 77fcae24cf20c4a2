"""Printing a resolved configuration with the origin of each value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bat_core.config.load import Resolved

PLAIN = re.compile(r"[A-Za-z][A-Za-z-]*(\.[A-Za-z-]+)*")
NOT_TEXT = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
"""Words that YAML takes for something else."""


def as_yaml(resolved: Resolved) -> str:
    """Return YAML, each value followed by a comment that says where it comes from."""
    return "\n".join(_lines(resolved.config.model_dump(mode="json"), resolved.origins, "")) + "\n"


def _lines(values: Mapping[str, Any], origins: Mapping[str, str], prefix: str, depth: int = 0) -> list[str]:
    lines = []
    for key, value in values.items():
        dotted = f"{prefix}{key}"
        indent = "  " * depth
        if isinstance(value, Mapping):
            lines += [f"{indent}{key}:", *_lines(value, origins, f"{dotted}.", depth + 1)]
        else:
            lines.append(f"{indent}{key}: {_scalar(value)}  # {origins.get(dotted, 'default')}")
    return lines


def _scalar(value: Any) -> str:
    import json

    if isinstance(value, float) and "e" in repr(value) and "." not in repr(value):
        return repr(value).replace("e", ".0e")  # YAML 1.1 takes 1e-07 for text
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in NOT_TEXT:
        return value
    return json.dumps(value)
