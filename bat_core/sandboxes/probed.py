"""Providers whose promises a canary checks on the machine at hand."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from bat_core.model.sandbox import Capabilities, Guarantee
from bat_core.sandboxes.canary import examine
from bat_core.sandboxes.provider import AgentProvider


class ProbedProvider(AgentProvider):
    """Promises what it should be able to hold, and once probed only what the canary found to hold.

    Args:
        store: Folder of the content store.
    """

    remedy: ClassVar[str]
    """What to do where it doesn't work."""

    def __init__(self, store: Path) -> None:
        super().__init__(store)
        self._found: Capabilities | None = None

    @property
    @abstractmethod
    def promised(self) -> frozenset[Guarantee]:
        """What a sandbox should guarantee on this machine, before anything was tried."""

    @property
    def guarantees(self) -> frozenset[Guarantee]:
        """What a sandbox promises here; once probed, only what the canary found to hold."""
        return self.promised if self._found is None else self._found.guarantees

    async def probe(self) -> Capabilities:
        """Run a real sandbox and try what it must not allow; the answer is remembered."""
        if self._found is None:
            self._found = await examine(self, self.remedy)
        return self._found
