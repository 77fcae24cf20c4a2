"""The seccomp profile of a container, as the engine's JSON: an allow list; what isn't named is refused.

It allows what programs, compilers and Python need. Left out, beside all that administers a machine: further
namespaces, other processes' memory, keys, io_uring, userfaultfd, bpf, perf, System V memory, and every family of
sockets but the ordinary three and netlink's routes; AF_VSOCK is a road to the host that no network namespace shuts.
"""

from __future__ import annotations

import errno
import json
import platform
from typing import Any

_ALLOWED = """
accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl
epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group
faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr
flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_wait futex_waitv futex_wake
futex_requeue futimesat get_mempolicy get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid
geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid
getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch
inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit
ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link
linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise membarrier mincore mkdir mkdirat mknod
mknodat mlock mlock2 mlockall mmap mprotect mremap msync munlock munlockall munmap nanosleep
newfstatat open openat openat2 pause pidfd_open pidfd_send_signal
pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease
pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg
remap_file_pages removexattr rename renameat renameat2 restart_syscall riscv_flush_icache rmdir rseq rt_sigaction
rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select
sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups
setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr
shutdown sigaltstack signalfd signalfd4 splice stat statfs statx symlink symlinkat sync sync_file_range syncfs
sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat utime utimensat utimes vfork vmsplice
wait4 waitid write writev
"""
# These look as if the kernel had never heard of them, so that libraries take their other road.
_UNKNOWN = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create", "memfd_secret")
_NEW_NAMESPACES = 0x7E020080
_FAMILIES = (1, 2, 10)  # unix, IPv4, IPv6
_NETLINK = 16
_TIOCSTI = 0x5412
_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64", "arm64": "SCMP_ARCH_AARCH64"}


def profile(machine: str | None = None) -> str:
    """Return the profile for a processor; one that isn't known gets the engine's native architecture."""
    known = _ARCHITECTURES.get(machine or platform.machine())
    rules = [
        _allow(_ALLOWED.split()),
        _refuse(_UNKNOWN, errno.ENOSYS),
        _allow(["clone"], _argument(0, _NEW_NAMESPACES, "SCMP_CMP_MASKED_EQ", 0)),
        _allow(["ioctl"], _argument(1, _TIOCSTI, "SCMP_CMP_NE")),
    ]
    for call in ("socket", "socketpair"):
        rules += _sockets(call)
    whole: dict[str, Any] = {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": errno.EPERM, "syscalls": rules}
    return json.dumps(whole | ({"architectures": [known]} if known else {}))


def _sockets(call: str) -> list[dict[str, Any]]:
    """Allow the ordinary families and netlink's routes; the others look as if the kernel hadn't got them."""
    netlink = _argument(0, _NETLINK, "SCMP_CMP_EQ")
    allowed = [_allow([call], _argument(0, family, "SCMP_CMP_EQ")) for family in _FAMILIES]
    allowed.append(_allow([call], netlink, _argument(2, 0, "SCMP_CMP_EQ")))
    refused = [family for family in range(_NETLINK) if family not in _FAMILIES]
    others: list[tuple[dict[str, Any], ...]] = [(_argument(0, family, "SCMP_CMP_EQ"),) for family in refused]
    others += [(_argument(0, _NETLINK, "SCMP_CMP_GT"),), (netlink, _argument(2, 0, "SCMP_CMP_NE"))]
    return allowed + [_refuse((call,), errno.EAFNOSUPPORT, *arguments) for arguments in others]


def _allow(names: list[str], *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ALLOW"} | ({"args": list(arguments)} if arguments else {})


def _refuse(names: tuple[str, ...], number: int, *arguments: dict[str, Any]) -> dict[str, Any]:
    refused = {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": number}
    return refused | ({"args": list(arguments)} if arguments else {})


def _argument(index: int, value: int, operator: str, second: int = 0) -> dict[str, Any]:
    return {"index": index, "value": value, "valueTwo": second, "op": operator}
