"""The index of a held-out side as a file: fingerprints under a key, sealed with that key. It holds no text.

Layout: a mark of eight bytes, the key's name, a nonce, a seal (HMAC-SHA256), then the sealed arrays. Without the key
the file says nothing but its length; with the key whoever has it can try guesses, so the key stays with the owner.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bat_core.errors import BatError, LeakageError
from bat_core.leakage.context import Context
from bat_core.leakage.hashing import Hasher
from bat_core.leakage.loading import load_rule
from bat_core.leakage.panel import Panel
from bat_core.leakage.rules.base import BatchRule

MARK = b"leakix1\n"
_NAME, _NONCE, _SEAL = 16, 16, 32
_HEAD = len(MARK) + _NAME + _NONCE + _SEAL
_MADE_ANEW = "make it anew with `bat leakage index`"


def write_index(path: Path, panel: Panel, rules: list[str], key: bytes, said: Mapping[str, Any]) -> None:
    """Write a panel's fingerprints; the file appears complete or not at all.

    Args:
        path: The file.
        panel: What to keep.
        rules: Its rules as `module:Class`.
        key: The key under which it was prepared.
        said: What else to keep about it.
    """
    about = {
        **said,
        "rules": rules,
        "labels": panel.labels,
        "covered": panel.covered,
        "refused": panel.refused,
        "index": panel.index,
    }
    arrays: dict[str, NDArray[np.generic]] = dict(panel.dump())
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays)
    nonce = secrets.token_bytes(_NONCE)
    name = _name(key)
    sealed = _streamed(body.getvalue(), key, nonce)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(MARK + name + nonce + _seal(key, name + nonce + sealed) + sealed)
    partial.replace(path)


def read_index(path: Path, key: bytes) -> tuple[Panel, dict[str, Any]]:
    """Return the panel that a file keeps, and what else it says about itself.

    Raises:
        LeakageError: It isn't an index, is damaged, or belongs to another key.
    """
    data = _read(path)
    if data[: len(MARK)] != MARK or len(data) < _HEAD:
        raise LeakageError(f"{path} is not a leakage index of this version", remedy=_MADE_ANEW)
    name, nonce, seal = _split(data)
    if not hmac.compare_digest(name, _name(key)):
        raise LeakageError(f"the key does not belong to {path}", remedy="give the key that was written with it")
    sealed = data[_HEAD:]
    if not hmac.compare_digest(seal, _seal(key, name + nonce + sealed)):
        raise LeakageError(f"{path} is damaged: its seal does not fit", remedy=_MADE_ANEW)
    try:
        with np.load(io.BytesIO(_streamed(sealed, key, nonce)), allow_pickle=False) as archive:
            arrays = {entry: archive[entry] for entry in archive.files}
        about = json.loads(arrays.pop("about").tobytes())
        return _panel(arrays, about, key), about
    except BatError:
        raise
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise LeakageError(
            f"{path} was written by another version ({type(error).__name__})", remedy=_MADE_ANEW
        ) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LeakageError(f"can't read {path} ({error.strerror})", remedy="check --index") from error


def _split(data: bytes) -> tuple[bytes, bytes, bytes]:
    at = len(MARK)
    return data[at : at + _NAME], data[at + _NAME : at + _NAME + _NONCE], data[at + _NAME + _NONCE : _HEAD]


def _panel(arrays: Mapping[str, NDArray[np.generic]], about: Mapping[str, Any], key: bytes) -> Panel:
    rules = [load_rule(spec) for spec in about["rules"]]
    chosen = [rule for rule in rules if isinstance(rule, BatchRule)]
    context = Context(hasher=Hasher(key), labels=list(about["labels"]))
    return Panel.restored(chosen, arrays, context, about)


def _name(key: bytes) -> bytes:
    return hashlib.blake2b(b"name", key=key, digest_size=_NAME).digest()


def _seal(key: bytes, data: bytes) -> bytes:
    return hmac.new(hashlib.blake2b(b"seal", key=key).digest(), data, hashlib.sha256).digest()


def _streamed(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """Return data with the key's stream added, or taken away: the same."""
    stream = hashlib.shake_256(hashlib.blake2b(b"stream", key=key).digest() + nonce).digest(len(data))
    return (np.frombuffer(data, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()
