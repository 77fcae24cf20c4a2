"""`bat doctor`: what works on this machine, and what to do about the rest."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bat_core.cli.options import DomainOption, JsonOption
from bat_core.hooks.sandbox import SandboxProvider
from bat_core.model.sandbox import Capabilities, Guarantee

PACKAGES = ("bat-core", "torch", "transformers", "trl", "peft", "accelerate", "datasets", "vllm", "docker")
OPTIONAL = ("vllm", "docker")
DISK = 2 << 30


def doctor(domain: DomainOption = "medimaging", as_json: JsonOption = False) -> None:
    """Check packages, sandboxes (by a real canary), disk, GPU and the domain. Exit 1 if something needed fails."""
    checks = [*_packages(), *_sandboxes(), *_automatic(domain), _disk(), _gpu(), _domain(domain)]
    if as_json:
        print(json.dumps(checks))
    else:
        for check in checks:
            print(
                f"{'ok  ' if check['ok'] else 'MISS' if check['needed'] else 'none'} {check['name']}: {check['detail']}"
            )
    if any(c["needed"] and not c["ok"] for c in checks):
        raise SystemExit(1)


def _check(name: str, ok: bool, detail: str, *, needed: bool) -> dict[str, Any]:
    return {"name": name, "ok": ok, "detail": detail, "needed": needed}


def _packages() -> list[dict[str, Any]]:
    found = []
    for name in PACKAGES:
        try:
            found.append(_check(name, True, version(name), needed=name not in OPTIONAL))
        except PackageNotFoundError:
            found.append(_check(name, False, f"not installed: pip install {name}", needed=name not in OPTIONAL))
    return found


def _sandboxes() -> list[dict[str, Any]]:
    from bat_core.registry import installed, load

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for plugin in installed("sandboxes"):
            provider = load("sandboxes", plugin.qualified)(Path(folder))
            capabilities = asyncio.run(_probed(provider))
            found.append(_check(f"sandbox {plugin.name}", capabilities.works, _promises(capabilities), needed=False))
    return found


async def _probed(provider: SandboxProvider) -> Capabilities:
    try:
        return await provider.probe()
    finally:
        await provider.aclose()


def _promises(found: Capabilities) -> str:
    """Return what a backend guarantees and what it lacks, or why it doesn't work."""
    if not found.works:
        return found.detail
    has = ", ".join(sorted(found.guarantees)) or "nothing"
    lacks = ", ".join(sorted(set(Guarantee) - found.guarantees)) or "nothing"
    return f"guarantees {has}; lacks {lacks}" + (f"; {found.detail}" if found.detail else "")


def _automatic(name: str) -> list[dict[str, Any]]:
    """Say what `sandbox.provider=auto` takes for the domain."""
    from bat_core.errors import BatError
    from bat_core.registry import installed, load, load_domain
    from bat_core.sandboxes.choose import chosen

    async def pick(folder: str) -> str:
        candidates = {f.name: load("sandboxes", f.qualified) for f in installed("sandboxes")}
        choice = await chosen("auto", candidates, Path(folder), load_domain(name).sandbox())
        await choice.provider.aclose()
        return choice.said

    with tempfile.TemporaryDirectory() as folder:
        try:
            return [_check("sandbox.provider=auto", True, asyncio.run(pick(folder)), needed=True)]
        except BatError as error:
            return [_check("sandbox.provider=auto", False, str(error), needed=True)]


def _disk() -> dict[str, Any]:
    free = shutil.disk_usage(Path.cwd()).free
    return _check("disk", free >= DISK, f"{free / 2**30:.1f} GiB free here, a run takes up to 2", needed=True)


def _gpu() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return _check("gpu", False, "none; use --preset cpu", needed=False)
    properties = torch.cuda.get_device_properties(0)
    return _check("gpu", True, f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB", needed=False)


def _domain(name: str) -> dict[str, Any]:
    from bat_core.errors import BatError
    from bat_core.registry import load_domain

    try:
        domain = load_domain(name)
    except BatError as error:
        return _check(f"domain {name}", False, str(error), needed=True)
    stages = ", ".join(stage.id for stage in domain.contract().stages())
    return _check(
        f"domain {name}",
        True,
        f"{domain.title}: stages {stages}; tracks {', '.join(domain.contract().tracks())}",
        needed=True,
    )
