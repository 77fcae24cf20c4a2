"""Lab: what it takes to run code for one domain in one process: event loop, sandboxes, harness, scorer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from bat_core import registry
from bat_core.config.schema import RolloutConfig, VerifyConfig
from bat_core.hooks.harness import Harness
from bat_core.hooks.sandbox import SandboxProvider
from bat_core.model.base import Value
from bat_core.sandboxes.choose import choose
from bat_core.sandboxes.pool import SandboxPool
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.verify.disclosure import disclosing
from bat_core.verify.scorer import Scorer

T = TypeVar("T")
UNSAFE = "unsafe-process"
"""Spelling this name out is the consent to run without any guarantee; it marks every receipt."""


class LabSpec(Value):
    """A lab in names and values, so that any process can set it up.

    Attributes:
        domain: Name of the domain.
        store: Folder of the snapshot store.
        provider: Sandbox backend, or `auto`.
        runtime: Container runtime of a provider that has such; empty for the engine's own.
        key: Hex key of the run's receipts.
        rollout: Harness and budgets.
        verify: How rollouts are judged.
    """

    domain: str
    store: str
    provider: str = "auto"
    runtime: str = ""
    key: str = ""
    rollout: RolloutConfig = RolloutConfig()
    verify: VerifyConfig = VerifyConfig()


class Lab:
    """A domain at work. Use as a context manager."""

    def __init__(self, spec: LabSpec) -> None:
        self.spec = spec
        self.key = bytes.fromhex(spec.key)
        self.domain = registry.load_domain(spec.domain)
        self.contract = disclosing(self.domain.contract(), spec.verify.hidden)
        self.store = SnapshotStore(Path(spec.store))
        self.scorer = Scorer(self.domain, self.store, self.key, spec.verify)
        self.harness: Harness = registry.load("harnesses", spec.rollout.harness)(spec.rollout.observation_chars)
        self._runner = asyncio.Runner()
        self._closed = False
        self._provider: SandboxProvider | None = None
        self._pool: SandboxPool | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the lab's own loop, to which its sandboxes belong."""
        return self._runner.run(work)

    async def pool(self) -> SandboxPool:
        """Return the warm pool, opening it when first needed."""
        if self._pool is None:
            spec = self.domain.sandbox()
            if self.spec.provider == UNSAFE:
                spec = spec.model_copy(update={"require": frozenset()})
            wanted = self.spec.provider
            names = [f.qualified for f in registry.installed("sandboxes")] if wanted == "auto" else [wanted]
            found = {name.rpartition("/")[2]: registry.load("sandboxes", name) for name in names}
            self._provider = await choose(wanted, found, Path(self.spec.store), spec, self.spec.runtime)
            self._pool = SandboxPool(self._provider, spec, self.spec.rollout.live)
        return self._pool

    @property
    def provider(self) -> str:
        """Name of the backend in use."""
        return self._provider.name if self._provider else self.spec.provider

    def close(self) -> None:
        """Stop all verifiers, sandboxes and the loop. Idempotent."""
        if not self._closed:
            self._closed = True
            self.run(self.scorer.aclose())
        if self._pool is not None:
            self.run(self._pool.aclose())
            self._pool = None
        if self._provider is not None:
            self.run(self._provider.aclose())
            self._provider = None
        self._runner.close()

    def __enter__(self) -> Lab:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


_OPEN: dict[str, Lab] = {}


def lab_for(spec: LabSpec) -> Lab:
    """Return this process's lab for `spec`, made on first use and kept until the process ends."""
    key = spec.model_dump_json()
    if key not in _OPEN:
        _OPEN[key] = Lab(spec)
    return _OPEN[key]


def close_labs() -> None:
    """Close every lab of this process."""
    while _OPEN:
        _OPEN.popitem()[1].close()
