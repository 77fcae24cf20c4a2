"""From what is asked of a sandbox to the arguments that make its container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bat_core.model.sandbox import Limits, SandboxSpec
from bat_core.sandboxes.ceiling import memory_ceiling
from bat_core.sandboxes.docker.container import OWNER
from bat_core.sandboxes.docker.profile import profile
from bat_core.sandboxes.hostpython import bare_environment
from bat_core.sandboxes.owner import this_process

USER = 61042  # no login of a host has it, and a remapped range of 65536 users does


def container_options(
    api: Any, spec: SandboxSpec, image: str, command: list[str], runtime: str | None
) -> dict[str, Any]:
    """Return the arguments of the SDK's `create_container`.

    Args:
        api: The SDK's client, which knows how a host configuration is spelt.
        spec: What was asked for.
        image: Id or tag.
        command: The agent's command line.
        runtime: OCI runtime, such as `runsc`; the engine's own if None.
    """
    limits = spec.limits
    memory = memory_ceiling(limits)
    host = api.create_host_config(
        network_mode="none",
        ipc_mode="private",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges", f"seccomp={profile()}"],
        tmpfs=_file_systems(limits),
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=limits.pids + 1,  # the agent counts
        nano_cpus=int(limits.cpus * 1e9) if limits.cpus else None,
        log_config={"Type": "none", "Config": {}},
        binds={spec.toolbelt: {"bind": "/toolbelt", "mode": "ro"}} if spec.image and spec.toolbelt else None,
        init=False,
        auto_remove=True,
        runtime=runtime,
    )
    return {
        "image": image,
        "command": command,
        "host_config": host,
        "environment": bare_environment("/usr/local/bin:/usr/bin:/bin", "/workspace"),
        "user": f"{USER}:{USER}",
        "hostname": "sandbox",
        "working_dir": "/",
        "stdin_open": True,  # and once: the agent ends when its host does
        "network_disabled": True,
        "labels": labels(),
    }


def labels() -> dict[str, str]:
    """Return who owns a container of this very process."""
    return {OWNER: str(this_process())}


def _file_systems(limits: Limits) -> Mapping[str, str]:
    """Return the writable places, all in memory and limited, and a closed one: message queues would outlive a reset."""
    own = f"rw,nosuid,nodev,nr_inodes={limits.inodes},uid={USER},gid={USER}"
    shared = max(1 << 20, limits.disk // 4)
    return {
        "/workspace": f"{own},exec,size={limits.disk},mode=0755",
        "/tmp": f"{own},exec,size={limits.disk},mode=1777",
        "/dev/shm": f"{own},noexec,size={shared},mode=1777",
        "/dev/mqueue": "ro,nosuid,nodev,noexec,size=4k,nr_inodes=1,mode=0555",
    }
