"""Rubric contracts: the binary items by which a stage is judged."""

from __future__ import annotations

from pydantic import Field

from bat_core.model.base import Value, digest_of


class RubricItem(Value):
    """One yes/no question about a rollout.

    Attributes:
        id: Unique within the domain, such as `S3.b`.
        criterion: The question as disclosed to the policy; never an answer.
        verifier: `check:NAME` for a deterministic check of the domain, else a verifier's entry-point name.
        weight: Weight in the stage's mean (1 unless the contract says otherwise).
    """

    id: str
    criterion: str
    verifier: str
    weight: float = Field(default=1.0, gt=0)


class Cap(Value):
    """If item `item` fails, the stage's mean can't exceed `at_most`."""

    item: str
    at_most: float = Field(ge=0, le=1)


class Rubric(Value):
    """The applicable items of one stage for one state: the contract c."""

    stage: str
    items: tuple[RubricItem, ...] = Field(min_length=1)
    caps: tuple[Cap, ...] = ()

    @property
    def digest(self) -> str:
        """Identity of the contract; groups share it."""
        return digest_of(self)
