"""A teacher as the expert of a task: it sees what a policy sees, and acts turn by turn in the real sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from bat_core.bank.teacher.exchange import Exchange
from bat_core.bank.teacher.forms import Move, solving_system
from bat_core.hooks.actor import Act, Actor
from bat_core.model.message import Message, ToolCall
from bat_core.model.task import Task


class TeacherActor(Actor):
    """Asks the teacher for the next move until it has said its last words.

    Args:
        exchange: The teacher.
        task: What is solved.
        stages: Ids of the stages, in order.
    """

    name: ClassVar[str] = "teacher"
    foresees = False

    def __init__(self, exchange: Exchange, task: Task, stages: Sequence[str]) -> None:
        self._exchange, self._task, self._stages = exchange, task, stages

    def act(self, history: Sequence[Message]) -> Act | None:
        """Return the teacher's next move; None after its last words, or when its turns are over."""
        spoken = [message for message in history if message.role == "assistant"]
        if (spoken and not spoken[-1].tool_calls) or len(spoken) >= self._exchange.settings.turns:
            return None
        move = self._exchange.ask(self._turns(history), Move, seed=self._task.seed % 2**31)
        stage = move.stage if move.stage in self._stages else self._stages[-1 if move.kind == "final" else 0]
        if move.kind == "final":
            return Act(self._stages[-1], Message(role="assistant", content=move.text))
        call = ToolCall(name="execute_code", arguments={"language": move.language, "code": move.text})
        return Act(stage, Message(role="assistant", tool_calls=(call,)))

    def _turns(self, history: Sequence[Message]) -> list[dict[str, str]]:
        turns = [{"role": "system", "content": solving_system(self._stages)}]
        for message in history:
            code = "\n".join(str(call.arguments.get("code", "")) for call in message.tool_calls)
            role = "assistant" if message.role == "assistant" else "user"
            turns.append({"role": role, "content": f"{message.content}{code}" or "(nothing)"})
        return turns
