"""The `tool-loop` harness: one tool, `execute_code`, and plain observations."""

from __future__ import annotations

from collections.abc import Sequence

from bat_core.hooks.contract import StageContract
from bat_core.hooks.harness import Harness
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.message import Message, ToolCall, ToolSpec
from bat_core.model.sandbox import ExecResult
from bat_core.model.state import StageState
from bat_core.model.task import Stratum

EXECUTE_CODE = ToolSpec(
    name="execute_code",
    description="Runs code in the sandbox, in /workspace, and returns what it prints.",
    parameters={
        "type": "object",
        "properties": {
            "language": {"type": "string", "enum": ["python", "bash"]},
            "code": {"type": "string"},
        },
        "required": ["language", "code"],
    },
)


class ToolLoop(Harness):
    """Drives a policy turn by turn: a call, its observation, until a message without a call.

    Args:
        observation_chars: Longest observation; the middle is cut out of longer ones.
    """

    def __init__(self, observation_chars: int = 2048) -> None:
        self._limit = observation_chars

    def tools(self) -> Sequence[ToolSpec]:
        """Return `execute_code(language, code)`."""
        return (EXECUTE_CODE,)

    def prompt(self, contract: StageContract, state: StageState) -> Sequence[Message]:
        """Return the state's history and, for a stage, its goal with the disclosed criteria."""
        if state.is_e2e:
            return state.messages
        stage = next(s for s in contract.stages() if s.id == state.focus)
        text = contract.instruction(state.task, stage, state.rubrics[0])
        if state.stratum is Stratum.RECOVERY and stage.recovery:
            text += " Recovery: " + "; ".join(stage.recovery) + "."
        return (*state.messages, Message(role="user", content=text))

    async def call(self, sandbox: Sandbox, call: ToolCall, timeout: float) -> ExecResult | str:
        """Run the code; a call that isn't well formed is answered, not executed."""
        language, code = call.arguments.get("language"), call.arguments.get("code")
        if call.name != EXECUTE_CODE.name:
            return f"error: no tool named {call.name}"
        if not isinstance(code, str) or language not in ("python", "bash"):
            return "error: execute_code needs language (python or bash) and code"
        if language == "python":
            return await sandbox.python(code, timeout=timeout)
        return await sandbox.exec(["bash"], stdin=code.encode(), timeout=timeout)

    def observation(self, result: ExecResult) -> str:
        """Return stdout and stderr, the exit status if it isn't 0, cut to the limit."""
        text = (result.stdout + result.stderr).decode(errors="replace").rstrip("\n")
        if result.status != "exited":
            text += f"\n[{result.status}]"
        elif result.rc:
            text += f"\n[exit {result.rc}]"
        return cut(text.lstrip("\n"), self._limit)


def cut(text: str, limit: int) -> str:
    """Return `text`, or its head and tail with a note of how much is missing between them."""
    if len(text) <= limit:
        return text
    keep = max(0, limit - len(_note(len(text))))
    head, tail = text[: keep - keep // 2], text[len(text) - keep // 2 :]
    return (head + _note(len(text) - keep) + tail)[:limit]


def _note(missing: int) -> str:
    return f"\n[{missing} characters cut]\n"
