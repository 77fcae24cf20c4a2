"""The filter, run in a small interpreter of classic BPF: no kernel of the other machine needed."""

from __future__ import annotations

import errno
import struct

import pytest

from bat_core.sandboxes import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(machine: str, call: int, *arguments: int, arch: int | None = None) -> int:
    data = struct.pack("=iIQ6Q", call, arch or ARCH[machine], 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    code = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    at, held = 0, 0
    while True:
        op, yes, no, value = code[at]
        at += 1
        if op == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        elif op == 0x06:
            return int(value)
        else:
            true = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[op]
            at += yes if true else no


def refused(number: int) -> int:
    return 0x00050000 | number


@pytest.mark.parametrize(
    ("machine", "call", "arguments", "expected"),
    [
        ("x86_64", 0, (), ALLOW),  # read
        ("x86_64", 59, (), ALLOW),  # execve
        ("x86_64", 101, (), refused(errno.EPERM)),  # ptrace
        ("x86_64", 435, (), refused(errno.ENOSYS)),  # clone3
        ("x86_64", 56, (0x01200011,), ALLOW),  # fork
        ("x86_64", 56, (0x003D0F00,), ALLOW),  # a thread
        ("x86_64", 56, (0x10000011,), refused(errno.EPERM)),  # with a user namespace
        ("x86_64", 56, (0x00020011,), refused(errno.EPERM)),  # with a mount namespace
        ("x86_64", 41, (1, 1, 0), ALLOW),
        ("x86_64", 41, (2, 1, 6), ALLOW),
        ("x86_64", 41, (10, 2, 0), ALLOW),
        ("x86_64", 41, (16, 3, 0), ALLOW),
        ("x86_64", 41, (16, 3, 9), refused(errno.EAFNOSUPPORT)),
        ("x86_64", 41, (40, 1, 0), refused(errno.EAFNOSUPPORT)),  # vsock
        ("x86_64", 41, (17, 3, 0), refused(errno.EAFNOSUPPORT)),  # packet
        ("x86_64", 53, (1, 1, 0), ALLOW),
        ("x86_64", 16, (0, 0x5412), refused(errno.EPERM)),  # TIOCSTI
        ("x86_64", 16, (0, 0x5401), ALLOW),
        ("x86_64", 0x40000000, (), KILL),  # x32
        ("aarch64", 117, (), refused(errno.EPERM)),
        ("aarch64", 63, (), ALLOW),
        ("aarch64", 220, (0x10000011,), refused(errno.EPERM)),
        ("aarch64", 198, (40, 1, 0), refused(errno.EAFNOSUPPORT)),
        ("aarch64", 198, (2, 1, 0), ALLOW),
        ("aarch64", 101, (), ALLOW),  # ptrace's number on the other machine
    ],
)
def test_verdicts(machine: str, call: int, arguments: tuple[int, ...], expected: int) -> None:
    assert verdict(machine, call, *arguments) == expected


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_another_architecture_is_killed(machine: str) -> None:
    other = {"x86_64": 0x40000003, "aarch64": 0x40000028}[machine]  # their 32-bit siblings
    assert verdict(machine, 0, arch=other) == KILL


def test_high_halves_of_arguments_do_not_fool_the_filter() -> None:
    assert verdict("x86_64", 41, (1 << 32) | 40, 1, 0) == refused(errno.EAFNOSUPPORT)


def test_unknown_machines_have_no_filter() -> None:
    assert not seccomp.supported("riscv64") and seccomp.supported("aarch64")
