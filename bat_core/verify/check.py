"""The `check` verifier: deterministic checks that a domain declares."""

from __future__ import annotations

from collections.abc import Mapping

from bat_core.errors import ContractError
from bat_core.hooks.verifier import RubricVerifier
from bat_core.model.evidence import Evidence
from bat_core.model.rubric import RubricItem
from bat_core.model.verdict import ItemVerdict


class CheckVerifier(RubricVerifier):
    """Dispatches `check:NAME` to the domain's verifier of that name.

    Args:
        checks: The domain's verifiers by name.
    """

    def __init__(self, checks: Mapping[str, RubricVerifier]) -> None:
        self._checks = checks

    async def verify(self, item: RubricItem, evidence: Evidence) -> ItemVerdict:
        """Return the named check's verdict."""
        name = item.verifier.partition(":")[2]
        if name not in self._checks:
            raise ContractError(
                f"item {item.id} names the check {name!r}, which the domain does not have",
                remedy=f"known checks: {', '.join(sorted(self._checks))}",
            )
        return await self._checks[name].verify(item, evidence)
