"""Harness: how a policy is driven in a sandbox."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from bat_core.hooks.contract import StageContract
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.message import Message, ToolCall, ToolSpec
from bat_core.model.sandbox import ExecResult
from bat_core.model.state import StageState


class Harness(ABC):
    """Messages, tools and observations; the same for training and evaluation."""

    @abstractmethod
    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools as shown to the policy."""

    @abstractmethod
    def prompt(self, contract: StageContract, state: StageState) -> Sequence[Message]:
        """Return the messages from which the policy goes on."""

    @abstractmethod
    async def call(self, sandbox: Sandbox, call: ToolCall, timeout: float) -> ExecResult | str:
        """Carry out a tool call; a str is the error message of a call that was not executed."""

    @abstractmethod
    def observation(self, result: ExecResult) -> str:
        """Return what the policy is shown of a result, cut to the observation limit."""
