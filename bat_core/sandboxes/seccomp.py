"""A seccomp filter in classic BPF, assembled here: what no workflow needs and what reaches past namespaces.

A deny list on top of namespaces, dropped capabilities and `no_new_privs`. Its gravest entries: AF_VSOCK, which no
network namespace shuts; further namespaces; memory that no limit counts (memfd, System V); reading other processes.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from typing import NamedTuple

_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NR, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET, TIME
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
_AF_NETLINK = 16

# name: number on x86_64, number on aarch64; None where the call doesn't exist
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "personality": (135, 92),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "lookup_dcookie": (212, 18), "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "uselib": (134, None), "_sysctl": (156, None), "nfsservctl": (180, 42),
}  # fmt: skip
# These look as if the kernel had never heard of them, so that libraries take their other road.
_UNKNOWN: dict[str, tuple[int, int]] = {
    "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
}  # fmt: skip


class _Machine(NamedTuple):
    audit: int
    column: int
    clone: int
    socket: int
    socketpair: int
    ioctl: int


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 0, 56, 41, 53, 16),
    "aarch64": _Machine(0xC00000B7, 1, 220, 198, 199, 29),
}


def supported(machine: str | None = None) -> bool:
    """Whether there's a filter for this processor."""
    return (machine or platform.machine()) in _MACHINES


def program(machine: str | None = None, *, sockets: bool = True) -> bytes:
    """Return the filter as an array of `struct sock_filter`, as `bwrap --seccomp` takes it.

    Args:
        machine: `x86_64` or `aarch64`; the running one by default. Raises `KeyError` for others.
        sockets: Whether sockets of the ordinary families may be opened; connected pairs always may.
    """
    made = _MACHINES[machine or platform.machine()]
    code = [_op(_LD, _ARCH), _op(_JEQ, made.audit, 1, 0), _op(_RET, _KILL), _op(_LD, _NR)]
    if made.column == 0:
        code += [_op(_JGE, _X32, 0, 1), _op(_RET, _KILL)]
    for table, number in ((_DENIED, errno.EPERM), (_UNKNOWN, errno.ENOSYS)):
        for columns in table.values():
            call = columns[made.column]
            if call is not None:
                code += [_op(_JEQ, call, 0, 1), _op(_RET, _ERRNO | number)]
    code += _arguments(made.clone, [_op(_LD, _ARG0), _op(_JSET, _NEW_NAMESPACES, 0, 1), _deny(errno.EPERM)])
    code += _arguments(made.ioctl, [_op(_LD, _ARG1), *_none_of((_TIOCSTI, _TIOCLINUX))])
    code += _arguments(made.socket, _families() if sockets else [_deny(errno.EAFNOSUPPORT)])
    code += _arguments(made.socketpair, _families())
    return b"".join([*code, _op(_RET, _ALLOW)])


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _deny(number: int) -> bytes:
    return _op(_RET, _ERRNO | number)


def _arguments(call: int, checks: list[bytes]) -> list[bytes]:
    """Return code that for `call` alone runs `checks`, which fall through when all is well, and then allows."""
    return [_op(_JEQ, call, 0, len(checks) + 1), *checks, _op(_RET, _ALLOW)]


def _none_of(values: tuple[int, ...]) -> list[bytes]:
    return [part for value in values for part in (_op(_JEQ, value, 0, 1), _deny(errno.EPERM))]


def _families() -> list[bytes]:
    """Allow the ordinary families, and netlink only with protocol 0 (routes)."""
    refuse = _deny(errno.EAFNOSUPPORT)
    netlink = [_op(_JEQ, _AF_NETLINK, 1, 0), refuse, _op(_LD, _ARG2), _op(_JEQ, 0, 1, 0), refuse]
    ordinary = [_op(_JEQ, family, len(_FAMILIES) - at - 1 + len(netlink), 0) for at, family in enumerate(_FAMILIES)]
    return [_op(_LD, _ARG0), *ordinary, *netlink]
