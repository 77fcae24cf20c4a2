"""The base of all values that cross a process or a file, and their digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

JsonObject = dict[str, Any]


class Value(BaseModel):
    """A frozen value; unknown fields are refused, non-finite floats too."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def canonical_json(value: Any) -> str:
    """Return `value` as JSON with sorted keys and no spaces: one spelling for one meaning."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:
    """Return `sha256:<hex>` of bytes as they are, or of the canonical JSON of anything else."""
    data = value if isinstance(value, bytes) else canonical_json(value).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()
