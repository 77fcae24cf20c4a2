"""Landlock and a seccomp filter around one child, by plain system calls: what is left where no namespace can be had."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence
from typing import NamedTuple

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class Confinement(NamedTuple):
    """What a child may reach.

    Attributes:
        read: Files and folders that it may read and execute.
        write: Folders in which it may do everything.
        program: Seccomp filter as an array of `struct sock_filter`; empty for none.
    """

    read: Sequence[str]
    write: Sequence[str]
    program: bytes

    def enter(self) -> None:
        """Confine the calling process and all below it, for good. Raises `OSError`."""
        library = ctypes.CDLL(None, use_errno=True)
        version = landlock_version()
        if version < 1:
            raise OSError(errno.ENOSYS, "this kernel has no Landlock")
        handled = _handled(version)
        ruleset = _ruleset(library, version, handled)
        for path in self.read:
            _allow(library, ruleset, path, _EXECUTE | _READ | _LIST)
        for path in self.write:
            _allow(library, ruleset, path, handled)
        for path in _DEVICES:
            _allow(library, ruleset, path, (_WRITE | _READ) & handled)
        _check(library.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        _check(library.syscall(_RESTRICT, ruleset, 0))
        os.close(ruleset)
        if self.program:
            code = ctypes.create_string_buffer(self.program, len(self.program))
            head = struct.pack("@HP", len(self.program) // 8, ctypes.addressof(code))
            _check(library.prctl(_SECCOMP, _FILTER, ctypes.create_string_buffer(head, len(head)), 0, 0))


def landlock_version() -> int:
    """Return the version of the kernel's Landlock, 0 where there is none."""
    library = ctypes.CDLL(None, use_errno=True)
    return max(0, int(library.syscall(_CREATE, None, 0, 1)))


def _handled(version: int) -> int:
    """Return all rights on files that this version knows, so that what isn't granted is refused."""
    known = 13 + (version >= 2) + (version >= 3) + (version >= 5)
    return (1 << known) - 1


def _ruleset(library: ctypes.CDLL, version: int, handled: int) -> int:
    """Return a handle; TCP and, outside the sandbox, abstract sockets and signals are refused where they can be."""
    fields = [handled, *([3] if version >= 4 else []), *([3] if version >= 6 else [])]
    data = struct.pack(f"={len(fields)}Q", *fields)
    return _check(library.syscall(_CREATE, ctypes.create_string_buffer(data, len(data)), len(data), 0))


def _allow(library: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
        rule = struct.pack("=Qi", rights, handle)
        _check(library.syscall(_ADD, ruleset, 1, ctypes.create_string_buffer(rule, len(rule)), 0))
    finally:
        os.close(handle)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
