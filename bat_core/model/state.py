"""A sandbox state from which rollouts start: p_i of the method."""

from __future__ import annotations

from bat_core.model.base import Value, digest_of
from bat_core.model.message import Message
from bat_core.model.receipt import Receipt
from bat_core.model.rubric import Rubric
from bat_core.model.sandbox import SnapshotRef
from bat_core.model.stage import E2E
from bat_core.model.task import Stratum, Task


class StageState(Value):
    """One state of the Stage Bank.

    Attributes:
        id: Unique within the bank.
        task: What the state belongs to.
        focus: A stage's id, or `E2E`.
        stratum: Outcome stratum of this state (a recovery task has success states before its fault).
        snapshot: Sealed workspace at the boundary.
        messages: History up to the boundary; the harness appends the stage's instruction.
        receipts: The harness's records of that history.
        rubrics: The contracts: one for a stage, all for `E2E`.
    """

    id: str
    task: Task
    focus: str
    stratum: Stratum
    snapshot: SnapshotRef
    messages: tuple[Message, ...]
    receipts: tuple[Receipt, ...] = ()
    rubrics: tuple[Rubric, ...]

    @property
    def digest(self) -> str:
        """Identity of the state; the keys of a run's receipts do not enter it."""
        body = self.model_dump(mode="json")
        for receipt in body["receipts"]:
            del receipt["mac"], receipt["prev"]
        return digest_of(body)

    @property
    def is_e2e(self) -> bool:
        """Whether the state runs through all stages."""
        return self.focus == E2E

    @property
    def contract_digest(self) -> str:
        """Identity of the rubric contract, shared by the members of a group."""
        return digest_of([rubric.digest for rubric in self.rubrics])
