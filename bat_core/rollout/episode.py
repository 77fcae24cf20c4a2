"""One rollout: a policy's turns in a sandbox, with the token ids as they were sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bat_core.config.schema import RolloutConfig
from bat_core.errors import OutputLimit, SandboxError
from bat_core.hooks.sandbox import Sandbox
from bat_core.model.message import Message
from bat_core.model.rollout import Rollout
from bat_core.model.state import StageState
from bat_core.rollout.chat import ChatFormat
from bat_core.rollout.engine import Session
from bat_core.rollout.lab import Lab
from bat_core.rollout.receipts import Ledger

End = Literal["finished", "turns", "tokens", "context", "overflow", "lost"]


@dataclass
class Tokens:
    """Ids of one rollout: `mask` is 1 where the policy sampled, 0 on observations; equal lengths."""

    prompt: list[int]
    completion: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def add(self, ids: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
        """Append what the policy sampled (with log-probabilities) or what it was shown (without)."""
        self.completion += ids
        self.mask += [int(logprobs is not None)] * len(ids)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)

    @property
    def total(self) -> int:
        """Length of the whole sequence."""
        return len(self.prompt) + len(self.completion)


@dataclass
class Episode:
    """A sealed rollout and its tokens."""

    rollout: Rollout
    tokens: Tokens


async def play(lab: Lab, chat: ChatFormat, session: Session, slot: int, state: StageState, index: int) -> Episode:
    """Run rollout `index` of `state`. A sandbox that fails us makes a lost rollout, never a reward."""
    prompt = list(lab.harness.prompt(lab.contract, state))
    tokens = Tokens(chat.prompt_ids(prompt))
    sandbox: Sandbox | None = None
    pool = await lab.pool()
    try:
        sandbox = await pool.acquire(state.snapshot)
        run = _Run(lab, chat, session, slot, state, tokens, sandbox)
        end = await run.turns()
        session.leave(slot)
        rollout = Rollout(
            state=state.id,
            index=index,
            messages=tuple(run.messages),
            receipts=tuple(run.ledger.receipts),
            final=await sandbox.snapshot(),
            end=end,
            policy_tokens=sum(tokens.mask),
            turns=run.count,
        )
    except OutputLimit as error:
        # The policy left more than may be sealed. Were that null, it could void its bad rollouts; so nothing counts.
        rollout = Rollout(
            state=state.id, index=index, end="overflow", reason=str(error), policy_tokens=sum(tokens.mask)
        )
    except SandboxError as error:
        rollout = Rollout(state=state.id, index=index, end="lost", reason=str(error), policy_tokens=sum(tokens.mask))
    finally:
        session.leave(slot)
        if sandbox is not None:
            await pool.release(sandbox)
    return Episode(rollout, tokens)


class _Run:
    """The loop over turns, with its budgets."""

    def __init__(
        self,
        lab: Lab,
        chat: ChatFormat,
        session: Session,
        slot: int,
        state: StageState,
        tokens: Tokens,
        sandbox: Sandbox,
    ) -> None:
        self.lab, self.chat, self.session, self.slot, self.tokens, self.sandbox = (
            lab,
            chat,
            session,
            slot,
            tokens,
            sandbox,
        )
        self.limits: RolloutConfig = lab.spec.rollout
        self.max_turns = self.limits.turns if state.is_e2e else self.limits.stage_turns
        self.ledger = Ledger(lab.key, sandbox.provider, state.receipts)
        self.messages: list[Message] = []
        self.count = 0

    async def turns(self) -> End:
        """Alternate turns and observations until the policy stops calling tools or a budget is spent."""
        new = self.tokens.prompt
        while self.count < self.max_turns:
            room = self._room()
            if room < self.limits.turn_tokens:
                return "context"
            turn = await self.session.sample(self.slot, new, self.limits.turn_tokens)
            self.count += 1
            self.tokens.add(turn.ids, turn.logprobs)
            message = self.chat.parse(turn.ids)
            self.messages.append(message)
            if not turn.finished:
                return "tokens"
            if not message.tool_calls:
                return "finished"
            if self.count == self.max_turns:
                break
            new = await self._observe(message)
            self.tokens.add(new)
        else:
            return "turns"
        await self._observe(message)
        return "turns"

    async def _observe(self, message: Message) -> list[int]:
        """Carry out the calls of a turn and return the ids of what the policy is shown."""
        shown = []
        for call in message.tool_calls:
            result = await self.lab.harness.call(self.sandbox, call, self.limits.exec_s)
            if isinstance(result, str):
                shown.append(result)
                continue
            self.ledger.add(call, result)
            shown.append(self.lab.harness.observation(result))
        observation = Message(role="tool", name=message.tool_calls[0].name, content="\n".join(shown))
        self.messages.append(observation)
        return self.chat.between_ids((observation,))

    def _room(self) -> int:
        window = self.chat.window - self.tokens.total
        return min(window, self.limits.response_tokens - len(self.tokens.completion))
