"""The sealed evidence that verifiers read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bat_core.model.message import Message
from bat_core.model.receipt import Receipt
from bat_core.model.task import Task


@dataclass(frozen=True)
class Evidence:
    """A sealed rollout as a verifier sees it; never the live workspace.

    Attributes:
        task: The task, private part included: verifiers are graders.
        focus: Stage id or `E2E` of the state.
        start: Regular files (workspace-relative path to bytes) when the policy took over.
        files: The same at the end.
        history: Receipts of what happened before the policy took over.
        receipts: Receipts of the policy's own calls.
        messages: The policy's own messages and observations.
        final: The last assistant text, empty if the rollout ended in a call.
        odd: Paths at the end that are not regular files or folders.
    """

    task: Task
    focus: str
    start: Mapping[str, bytes]
    files: Mapping[str, bytes]
    history: tuple[Receipt, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    messages: tuple[Message, ...] = ()
    final: str = ""
    odd: tuple[str, ...] = ()
