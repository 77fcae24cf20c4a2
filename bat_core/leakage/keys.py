"""The key of an index: in a file beside it that only its owner can read, or in the environment."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from bat_core.errors import LeakageError
from bat_core.leakage.hashing import KEY_BYTES

VARIABLE = "BAT_LEAKAGE_KEY"
_LEAST_PHRASE = 20
_SALT = b"bat-leakage-key"


def key_file(index: Path) -> Path:
    """Return where the key of an index lies."""
    return index.with_name(index.name + ".key")


def new_key() -> bytes:
    """Return the key for a new index: from the environment, else a fresh one.

    Raises:
        LeakageError: The environment holds a weak one.
    """
    given = os.environ.get(VARIABLE)
    return _parsed(given, VARIABLE) if given else secrets.token_bytes(KEY_BYTES)


def keep_key(index: Path, key: bytes) -> None:
    """Write the key of an index to FILE.key with mode 0600, unless it came from the environment."""
    if not os.environ.get(VARIABLE):
        _write(key_file(index), key)


def new_receipt_key(index: Path) -> bytes:
    """Return the key of receipts for an index, in FILE.receipt with mode 0600; made when first needed.

    The owner gives it to the trainer, who can then tell genuine receipts. It opens no index.
    """
    path = receipt_file(index)
    if not path.exists():
        _write(path, secrets.token_bytes(KEY_BYTES))
    return read_key(path)


def receipt_file(index: Path) -> Path:
    """Return where the receipt key of an index lies."""
    return index.with_name(index.name + ".receipt")


def read_key(path: Path) -> bytes:
    """Return the key in a file.

    Raises:
        LeakageError: It can't be read, or is none.
    """
    try:
        return _parsed(path.read_text(errors="replace"), str(path))
    except OSError as error:
        raise LeakageError(f"can't read the key {path} ({error.strerror})", remedy="check the name") from error


def _write(path: Path, key: bytes) -> None:
    """Write a key that only its owner can read; the file appears complete or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key.hex() + "\n")
    partial.replace(path)


def key_of(index: Path) -> bytes:
    """Return the key of an index.

    Raises:
        LeakageError: There is none, or it isn't one.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return _parsed(given, VARIABLE)
    path = key_file(index)
    try:
        return _parsed(path.read_text(errors="replace"), str(path))
    except OSError as error:
        raise LeakageError(
            f"no key for {index} ({path}: {error.strerror})", remedy=f"put it there or set {VARIABLE}"
        ) from error


def _parsed(text: str, where: str) -> bytes:
    """Return the key that a text holds: 64 hexadecimal digits, or a long phrase."""
    text = text.strip()
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) == KEY_BYTES:
        return key
    if len(text) < _LEAST_PHRASE:
        raise LeakageError(
            f"the key in {where} is too weak", remedy="give 64 hexadecimal digits: `openssl rand -hex 32`"
        )
    return hashlib.scrypt(text.encode(), salt=_SALT, n=1 << 14, r=8, p=1, dklen=KEY_BYTES)
