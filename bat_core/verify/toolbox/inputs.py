"""Immutability of inputs: what was given and is not as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence


def changed(
    before: Mapping[str, bytes], after: Mapping[str, bytes], prefixes: Sequence[str], odd: Iterable[str] = ()
) -> list[str]:
    """Return one phrase for each protected path that was changed, added, removed or replaced.

    Args:
        before: Files when the policy took over.
        after: Files at the end.
        prefixes: What is protected, as path prefixes.
        odd: Paths that are no regular files at the end.
    """
    shield = tuple(prefixes)
    out = [
        f"protected path {path} was changed"
        for path in sorted(set(before) | set(after))
        if path.startswith(shield) and before.get(path) != after.get(path)
    ]
    return out + [
        f"protected path {path} was replaced by something that is not a file" for path in odd if path.startswith(shield)
    ]


def differing(files: Mapping[str, bytes], hashes: Mapping[str, str]) -> list[str]:
    """Return the paths whose content has another sha256 than the one that was noted, or that are gone."""
    found = {path: hashlib.sha256(data).hexdigest() for path, data in files.items() if path in hashes}
    return sorted(path for path, noted in hashes.items() if found.get(path) != noted.removeprefix("sha256:"))


def inside(path: str, prefixes: Sequence[str]) -> bool:
    """Return whether `path`, however it is spelt, lies under one of the prefixes."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    plain = "/".join(parts)
    return any(plain == one.rstrip("/") or plain.startswith(one.rstrip("/") + "/") for one in prefixes)
