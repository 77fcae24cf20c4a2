"""The environment of every command in a sandbox: nothing of the host's."""

from __future__ import annotations

from bat_core.model.sandbox import SandboxSpec
from bat_core.sandboxes.hostpython import bare_environment


def environment(
    spec: SandboxSpec, path: str, workspace: str = "/workspace", toolbelt: str = "/toolbelt"
) -> dict[str, str]:
    """Return the variables of `spec` on top of the bare ones; the toolbelt leads `path` and is importable."""
    if not spec.toolbelt:
        return bare_environment(path, workspace) | spec.env
    return bare_environment(f"{toolbelt}/bin:{path}", workspace) | {"PYTHONPATH": toolbelt} | spec.env
