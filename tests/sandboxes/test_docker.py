"""What is docker's own: images that repeat, owners, reaping, hard limits, and refusals in one line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import CapabilityError, ConfigError, SandboxUnavailable
from bat_core.model.sandbox import Capabilities, Guarantee, SandboxSpec
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
from bat_core.sandboxes.choose import choose
from bat_core.sandboxes.docker.container import OWNER
from bat_core.sandboxes.docker.layer import Layer
from bat_core.sandboxes.docker.profile import profile
from bat_core.sandboxes.docker.provider import DockerProvider
from bat_core.sandboxes.owner import parse, this_process

Spec = Callable[..., SandboxSpec]
PLACES = [b"/workspace", b"/tmp", b"/dev/shm"]


@pytest.mark.docker
def test_the_canary_finds_a_sound_sandbox(docker: DockerProvider) -> None:
    found = asyncio.run(docker.probe())
    assert found.works and found.detail == ""
    assert set(Guarantee) - found.guarantees == {Guarantee.KERNEL}


@pytest.mark.docker
def test_an_image_built_twice_has_one_id(docker: DockerProvider, tmp_path: Path) -> None:
    belt = tmp_path / "belt"
    belt.mkdir()
    (belt / "trade.py").write_text("ANSWER = 42\n")
    spec = SandboxSpec(toolbelt=str(belt))

    async def body() -> tuple[str, str, str]:
        first = await docker.build(spec)
        second = await docker.build(spec)
        (belt / "trade.py").write_text("ANSWER = 43\n")
        return first, second, await docker.build(spec)

    first, second, changed = asyncio.run(body())
    assert first == second != changed
    assert docker.engine.api().inspect_image(first)["Created"].startswith("1970-01-01")


@pytest.mark.docker
def test_a_container_goes_with_a_killed_owner(docker: DockerProvider, tmp_path: Path) -> None:
    program = f"""
import asyncio, os, sys
from pathlib import Path
from bat_core.model.sandbox import SandboxSpec
from bat_core.sandboxes.docker.provider import DockerProvider
async def main():
    box = await DockerProvider(Path({str(tmp_path)!r})).open(SandboxSpec())
    task = asyncio.create_task(box.exec(["sleep", "59"]))
    await asyncio.sleep(0.3)
    print(box._lifeline.name, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=90, cwd=Path.cwd(), check=False)
    assert done.returncode == -9, done.stderr
    name, api = done.stdout.decode().strip(), docker.engine.api()
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and api.containers(all=True, filters={"id": name}):
        time.sleep(0.1)
    assert not api.containers(all=True, filters={"id": name})


@pytest.mark.docker
def test_only_what_dead_owners_left_is_reaped(docker: DockerProvider) -> None:
    async def body() -> None:
        box = await docker.open(SandboxSpec())
        api, image = docker.engine.api(), await docker.image(SandboxSpec())
        ours = this_process()
        owners = {
            "dead": ours._replace(start="1"),
            "other boot": ours._replace(boot="before"),
            "elsewhere": ours._replace(host="other-host", start="1"),
            "nobody": "no owner at all",
        }
        made = {
            what: api.create_container(image, ["true"], labels={OWNER: str(owner)})["Id"]
            for what, owner in owners.items()
        }
        try:
            assert set(await docker.reap()) == {made["dead"], made["other boot"]}
            assert (await box.exec(["true"])).rc == 0
        finally:
            for what in ("elsewhere", "nobody"):
                api.remove_container(made[what], force=True)
        await docker.aclose()

    asyncio.run(body())


@pytest.mark.docker
def test_processors_are_limited_here_and_refused_elsewhere(docker: DockerProvider, tmp_path: Path) -> None:
    async def body() -> None:
        box = await docker.open(SandboxSpec(limits={"cpus": 0.2}))  # type: ignore[arg-type]
        result = await box.exec(["timeout", "1.5", "sh", "-c", "while :; do :; done"])
        assert result.cpu_s < 0.7
        await docker.aclose()
        with pytest.raises(CapabilityError, match=r"can't limit processors; leave .*limits\.cpus"):
            await BubblewrapProvider(tmp_path).open(SandboxSpec(limits={"cpus": 1}))  # type: ignore[arg-type]

    asyncio.run(body())


@pytest.mark.docker
@pytest.mark.parametrize(
    ("changes", "said"),
    [({"image": "no-such-image:1"}, r"no image 'no-such-image:1'; docker pull"), ({}, r"no-such-runtime.*; mend")],
)
def test_what_the_engine_has_not_got_is_told_in_one_line(docker: DockerProvider, changes: Any, said: str) -> None:
    docker.runtime = None if changes else "no-such-runtime"
    with pytest.raises(SandboxUnavailable, match=said) as caught:
        asyncio.run(docker.open(SandboxSpec(**changes)))
    assert "\n" not in str(caught.value)


@pytest.mark.docker
def test_no_message_queue_outlives_a_reset(docker: DockerProvider) -> None:
    async def body() -> None:
        box = await docker.open(SandboxSpec())
        assert (await box.exec(["sh", "-c", "echo 1 > /dev/mqueue/left"])).rc != 0
        writable = await box.exec(["sh", "-c", "find / -path /proc -prune -o -writable -type d -print 2>/dev/null"])
        assert sorted(writable.stdout.split()) == sorted(PLACES)
        await docker.aclose()

    asyncio.run(body())


@pytest.mark.parametrize(
    ("place", "said"),
    [("unix:///nowhere.sock", "no Docker engine answers at"), ("tcp://192.0.2.1:2375", "needs a local socket")],
)
def test_without_an_engine_the_probe_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", place)
    found = asyncio.run(DockerProvider(tmp_path).probe())
    assert not found.works and "\n" not in found.detail
    assert "can't be imported" in found.detail or said in found.detail
    assert "bat-core[docker]" in found.detail


def test_a_runtime_goes_to_who_has_runtimes(tmp_path: Path) -> None:
    asked = []

    class Recording(DockerProvider):
        async def probe(self) -> Capabilities:
            asked.append(self.runtime)
            return Capabilities(provider="docker", works=True, guarantees=frozenset(Guarantee))

        async def reap(self) -> list[str]:
            return []

    candidates: dict[str, Any] = {"docker": Recording, "bubblewrap": BubblewrapProvider}
    for name in ("auto", "docker"):
        assert isinstance(asyncio.run(choose(name, candidates, tmp_path, SandboxSpec(), "runsc")), Recording)
    assert asked == ["runsc", "runsc"]
    with pytest.raises(ConfigError, match=r"sandbox\.runtime=runsc means nothing to sandbox\.provider=bubblewrap"):
        asyncio.run(choose("bubblewrap", candidates, tmp_path, SandboxSpec(), "runsc"))


def test_the_profile_is_an_allow_list_without_roads_to_the_host() -> None:
    whole = json.loads(profile("x86_64"))
    assert (whole["defaultAction"], whole["architectures"]) == ("SCMP_ACT_ERRNO", ["SCMP_ARCH_X86_64"])
    allowed = {name for rule in whole["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    forbidden = """mount umount2 unshare setns ptrace bpf keyctl add_key request_key userfaultfd io_uring_setup
        perf_event_open process_vm_readv process_vm_writev kexec_load init_module open_by_handle_at pivot_root chroot
        shmget msgget semget mq_open personality syslog reboot swapon memfd_create clone3"""
    assert not allowed & set(forbidden.split())
    plain = [rule for rule in whole["syscalls"] if "socket" in rule["names"] and rule["action"] == "SCMP_ACT_ALLOW"]
    assert {rule["args"][0]["value"] for rule in plain} == {1, 2, 10, 16}
    assert all("args" in rule for rule in plain)


def test_a_layer_is_the_same_bytes_however_it_came_together(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("VALUES = frozenset({'a', 'b', None, 1.5})\n")

    def made(names: list[str]) -> str:
        layer = Layer()
        for name in names:
            layer.file(f"/opt/{name}.py", source)
        return layer.tar().digest

    assert made(["a", "b", "c"]) == made(["c", "b", "a"]) != made(["a", "b"])


def test_an_owner_is_alive_until_it_is_certainly_dead() -> None:
    ours = this_process()
    assert parse(str(ours)) == ours and not ours.dead
    assert parse("a/b/c") is None and parse("a/b/x/1") is None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    theirs = ours._replace(pid=child.pid, start=Path(f"/proc/{child.pid}/stat").read_text().split()[21])
    assert not theirs.dead
    child.communicate(b"\n")
    assert theirs.dead and not theirs._replace(host="elsewhere").dead and theirs._replace(boot="earlier").dead
