"""The first process of a sandbox: serves one call at a time and keeps its commands in check.

It has no signal handlers, so as first process of a namespace no signal from inside reaches it; it is
undumpable, so nobody inside may trace it or read its memory and handles.
"""

from __future__ import annotations

import binascii
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from bat_core.sandboxes.inside.confine import Confinement
from bat_core.sandboxes.inside.frames import Closed, read_frame, write_frame
from bat_core.sandboxes.inside.launch import Launcher, executed, forked, spawned
from bat_core.sandboxes.inside.process import (
    Usage,
    address_space,
    become_subreaper,
    limit_memory,
    limit_process,
    set_dumpable,
    sweep,
)
from bat_core.sandboxes.inside.run import Rules, run
from bat_core.sandboxes.inside.warm import preload, run_source
from bat_core.sandboxes.inside.workspace import Oversize, Workspace, wipe
from bat_core.sandboxes.tarball import decode, encode

Chunks = Sequence[bytes | bytearray]
Reply = tuple[dict[str, Any], Chunks]


class Agent:
    """State of the sandbox between calls.

    Args:
        config: Header of the first frame: workspace, scratch folders, limits, environment, preload.
        hangup: Handle on which the loss of the host shows.
    """

    def __init__(self, config: dict[str, Any], hangup: int) -> None:
        self.limits: dict[str, Any] = config["limits"]
        self.env: dict[str, str] = config["env"]
        self.scratch: list[str] = config["scratch"]
        self.workspace = Workspace(config["workspace"], self.limits["disk"], self.limits["inodes"])
        places = (config["workspace"], *self.scratch) if config["namespace"] else ()
        self.rules = Rules(
            self.limits["memory"], self.limits["output"], self.limits["inodes"], places, config["namespace"], hangup
        )
        self.confinement = _confinement(config.get("confine"))
        self.known: str | None = None
        self.ends = time.monotonic() + self.limits["lifetime_s"]
        os.environ.clear()
        os.environ.update(self.env)
        sys.path.extend(config["paths"])
        self.bound = preload(config["preload"])
        sys.path.append(config["workspace"])  # last: a workspace's json.py shadows nothing
        self.base = address_space()
        self._settle()

    def _settle(self) -> None:
        """Take on what every command inherits: folder, file mode and limits."""
        os.chdir(self.workspace.root)
        os.umask(0o022)
        limits = self.limits
        limit_process(limits["pids"], limits["disk"], limits["open_files"])
        limit_memory(limits["memory"] + self.base + 2 * limits["disk"])  # we hold a whole workspace when we pack it

    def answer(self, header: dict[str, Any], body: bytearray) -> Reply:
        """Carry out one call."""
        calls: dict[str, Callable[[dict[str, Any], bytearray], Reply]] = {
            "exec": self._exec,
            "python": self._python,
            "read": self._read,
            "write": self._write,
            "list": self._list,
            "collect": self._collect,
            "pack": self._pack,
            "restore": self._restore,
            "hash": lambda header, body: ({"root": self._hash()}, ()),
        }
        return calls[header["op"]](header, body)

    def _exec(self, header: dict[str, Any], body: bytearray) -> Reply:
        env = {**self.env, **header["env"]}
        if self.confinement is None:
            launch = spawned(header["argv"], env, self.rules.memory)
        else:
            launch = executed(header["argv"], env, self.rules.memory, self.confinement.enter)
        return self._run(launch, body, header["timeout"])

    def _python(self, header: dict[str, Any], body: bytearray) -> Reply:
        def start() -> NoReturn:
            set_dumpable(True)
            if self.confinement is not None:
                self.confinement.enter()
            limit_memory(self.rules.memory + self.base)  # what a fork inherits comes on top
            run_source(body.decode("utf-8", "surrogatepass"), self.bound)

        return self._run(forked(start), b"", header["timeout"])

    def _run(self, launch: Launcher, stdin: bytes | bytearray, timeout: float) -> Reply:
        before = self._hash()
        self.known = None
        outcome = run(launch, stdin, timeout, self.rules)
        fields = {**outcome.fields, "ws_before": before, "ws_after": self._hash(), "split": len(outcome.stdout)}
        return fields, (outcome.stdout, outcome.stderr)

    def _hash(self) -> str:
        """Return the tree hash, which only our own calls can change; empty if the tree is oversize."""
        if self.known is None:
            try:
                self.known = self.workspace.hash()
            except Oversize:
                self.known = ""
        return self.known

    def _read(self, header: dict[str, Any], body: bytearray) -> Reply:
        return {}, (self.workspace.read(header["path"], header["max_bytes"]),)

    def _write(self, header: dict[str, Any], body: bytearray) -> Reply:
        self.known = None
        self.workspace.write(header["path"], body, header["executable"])
        return {}, ()

    def _list(self, header: dict[str, Any], body: bytearray) -> Reply:
        lines = [f"{entry.kind} {entry.size} ".encode() + os.fsencode(entry.path) for entry in self.workspace.scan()]
        return {}, (b"\0".join(lines),)

    def _collect(self, header: dict[str, Any], body: bytearray) -> Reply:
        return {}, encode(self.workspace.load(("file",), header["max_bytes"]))

    def _pack(self, header: dict[str, Any], body: bytearray) -> Reply:
        self._sweep()
        self.known = None
        return {}, encode(self.workspace.load(("file", "dir", "link", "other"), self.limits["disk"]))

    def _restore(self, header: dict[str, Any], body: bytearray) -> Reply:
        self._sweep()
        self.known = None
        for folder in [self.workspace.root, *self.scratch]:
            wipe(folder)
        self.workspace.fill(decode(body))
        return {"root": self._hash()}, ()

    def _sweep(self) -> None:
        sweep(Usage(0), namespace=self.rules.namespace)


def _confinement(told: dict[str, Any] | None) -> Confinement | None:
    if told is None:
        return None
    return Confinement(told["read"], told["write"], binascii.a2b_base64(told["program"]))


def main() -> NoReturn:
    """Take over the standard streams as protocol, then serve until the host goes or time is up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    set_dumpable(False)
    os.closerange(3, 1 << 16)  # whatever the backend passed us must not reach a command
    incoming, outgoing = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    code = 1
    try:
        agent = _start(incoming, outgoing)
        os.dup2(nowhere, 2)  # the host reads what was said until here, nothing later
        _serve(agent, incoming, outgoing)
        code = 0
    except (Closed, BrokenPipeError):
        code = 0
    except BaseException:  # noqa: BLE001 - boundary: told on standard error, which the host shows
        traceback.print_exc()
    finally:
        if os.getpid() != 1:
            sweep(Usage(0), namespace=False)  # a first process takes all others along, another one doesn't
        os._exit(code)


def _start(incoming: int, outgoing: int) -> Agent:
    header = read_frame(incoming).header
    if not header["namespace"]:
        become_subreaper()
    try:
        agent = Agent(header, incoming)
    except ImportError as error:
        write_frame(outgoing, {"ok": False, "kind": "preload", "message": str(error)})
        raise Closed("a module is missing") from error
    write_frame(outgoing, {"ok": True, "pid": os.getpid(), "python": sys.version.split()[0]})
    return agent


def _serve(agent: Agent, incoming: int, outgoing: int) -> None:
    while True:
        left = agent.ends - time.monotonic()
        if left <= 0 or not select.select([incoming], [], [], left)[0]:
            return
        header, body = read_frame(incoming)
        if header["op"] == "stop":
            return
        try:
            fields, chunks = agent.answer(header, body)
        except Oversize as error:
            fields, chunks = {"ok": False, "kind": "limit", "message": str(error)}, ()
        except OSError as error:
            fields, chunks = _failure(error), ()
        body[:] = bytes(len(body))  # a later fork must not find, say, a verifier's program in freed memory
        write_frame(outgoing, {"ok": True, **fields}, chunks)


def _failure(error: OSError) -> dict[str, Any]:
    return {"ok": False, "kind": "os", "errno": error.errno or 5, "message": error.strerror or str(error)}
