"""Rollouts end to end: a scripted policy in a real sandbox, scored from its sealed workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bat_core.config.schema import RolloutConfig
from bat_core.errors import SandboxUnavailable
from bat_core.model.message import Message, ToolCall
from bat_core.model.state import StageState
from bat_core.model.task import Stratum, Task
from bat_core.rollout.chat import ChatFormat
from bat_core.rollout.collect import Batch, Job, Scored, collect
from bat_core.rollout.engine import Engine, Sampled, Session, attach
from bat_core.rollout.lab import Lab, LabSpec, close_labs, lab_for
from bat_core.rollout.tool_loop import EXECUTE_CODE
from bat_core.verify.chain import verify_chain

DOMAIN = """
from bat_core import Domain, ItemVerdict, Rubric, RubricItem, RubricVerifier, Stage, StageContract

class Contract(StageContract):
    name = "notes"
    def stages(self): return [Stage(id="A", title="Write", goal="Write 42.", weight=1, recovery=("Try again",))]
    def tracks(self): return ["t"]
    def rubric(self, task, stage, stratum):
        return Rubric(stage="A", items=(RubricItem(id="A.a", criterion="written?", verifier="check:done"),))
    def workspace(self, task): return {"given/x": b"1"}
    def protected(self): return ["given/"]
    def introduction(self, task): return "You have a workspace."
    def task_score(self, task, files): return None

class Done(RubricVerifier):
    async def verify(self, item, evidence):
        return ItemVerdict(item=item.id, passed=evidence.files.get("done") == b"42")

class Notes(Domain):
    title = "notes"
    def contract(self): return Contract()
    def synthesizer(self): ...
    def expert(self, task, slips=None): ...
    def verifiers(self): return {"done": Done()}
"""


def call(code: str) -> Message:
    return Message(
        role="assistant", tool_calls=(ToolCall(name="execute_code", arguments={"language": "python", "code": code}),)
    )


WRITE = call("open('done', 'w').write('42'); print('written')")
END = Message(role="assistant", content="stage done")


class Scripted(Engine):
    """Says what the script of each slot's seed says, in the tokens that a policy would have to sample."""

    def __init__(self, chat: ChatFormat, scripts: dict[int, list[Message]]) -> None:
        self.chat, self.scripts = chat, scripts
        self.tokenizer, self.context = chat.tokenizer, chat.window
        self.heard: list[list[int]] = []

    def open(self, seeds: Sequence[int]) -> Session:
        engine, scripts = self, [iter(self.scripts[seed]) for seed in seeds]

        class Speaking(Session):
            async def sample(self, slot: int, new_ids: Sequence[int], max_tokens: int) -> Sampled:
                engine.heard.append(list(new_ids))
                ids = engine.chat.target_ids(next(scripts[slot]))
                return Sampled(ids[:max_tokens], [-0.5] * len(ids[:max_tokens]), len(ids) <= max_tokens)

            def leave(self, slot: int) -> None: ...

        return Speaking()


Make = Callable[..., tuple[Lab, LabSpec, StageState]]


@pytest.fixture
def notes(tmp_path: Path, distribute: Callable[[str, str, str], Path]) -> Iterator[Make]:
    distribute("bat_notes", DOMAIN, "[bat_core.domains]\nnotes = bat_notes:Notes\n")

    def make(**rollout: Any) -> tuple[Lab, LabSpec, StageState]:
        config = RolloutConfig.model_validate({"turn_tokens": 120, "stage_turns": 3, "live": 2} | rollout)
        spec = LabSpec(
            domain="notes", store=str(tmp_path / "store"), provider="bubblewrap", key="ab" * 32, rollout=config
        )
        lab = lab_for(spec)
        task = Task(id="t", domain="notes", track="t", seed=0)
        state = StageState(
            id="s",
            task=task,
            focus="A",
            stratum=Stratum.RECOVERY,
            snapshot=lab.store.put_files(lab.contract.workspace(task)),
            messages=(Message(role="system", content=lab.contract.introduction(task)),),
            rubrics=(lab.contract.rubric(task, "A", Stratum.RECOVERY),),
        )
        return lab, spec, state

    yield make
    close_labs()


def played(chat: ChatFormat, spec: LabSpec, state: StageState, *scripts: list[Message]) -> list[Scored]:
    engine = Scripted(chat, dict(enumerate(scripts)))
    attach("scripted", engine)
    jobs = [Job(state, k, seed) for k, seed in enumerate(range(len(scripts)))]
    return collect(Batch(spec, "scripted", jobs))


def test_a_group_of_rollouts_is_scored_from_identical_resets(chat: ChatFormat, notes: Make) -> None:
    lab, spec, state = notes()
    wrong = call("import os; print(os.listdir('.'))")
    done = []
    scripts = [[WRITE, END], [wrong, END], [END], [wrong, WRITE, END]]
    attach("scripted", Scripted(chat, dict(enumerate(scripts))))
    jobs = [Job(state, k, k) for k in range(4)]
    found = collect(Batch(spec, "scripted", jobs), lambda n, total: done.append((n, total)))
    assert [one.reward.value for one in found] == [1.0, 0.0, 0.0, 1.0]
    assert [one.episode.rollout.index for one in found] == [0, 1, 2, 3]
    assert {one.episode.rollout.end for one in found} == {"finished"}
    first = [one.episode.rollout.receipts[0].ws_before for one in found if one.episode.rollout.receipts]
    assert set(first) == {state.snapshot.root}, "all begin in the same workspace, dirty predecessors or not"
    assert "done" not in found[3].episode.rollout.messages[1].content
    assert sorted(total for _, total in done) == [4] * len(done) and max(n for n, _ in done) == 4
    for one in found:
        receipts = one.episode.rollout.receipts
        assert verify_chain(lab.key, receipts) and all(r.provider == "bubblewrap" for r in receipts)
        assert one.episode.rollout.final is not None and lab.store.has(one.episode.rollout.final)


def test_only_what_the_policy_said_is_marked_as_its_own(chat: ChatFormat, notes: Make) -> None:
    lab, spec, state = notes()
    (one,) = played(chat, spec, state, [WRITE, END])
    tokens = one.episode.tokens
    assert len(tokens.completion) == len(tokens.mask) == len(tokens.logprobs)
    mine = [i for i, own in zip(tokens.completion, tokens.mask, strict=True) if own]
    assert mine == chat.target_ids(WRITE) + chat.target_ids(END)
    shown = [i for i, own in zip(tokens.completion, tokens.mask, strict=True) if not own]
    assert "written" in chat.tokenizer.decode(shown)
    assert [p != 0.0 for p in tokens.logprobs] == [bool(own) for own in tokens.mask]
    prompt = lab.harness.prompt(lab.contract, state)
    whole = [*prompt, *one.episode.rollout.messages]
    assert tokens.prompt + tokens.completion == chat.prompt_ids(whole)[: len(tokens.prompt) + len(tokens.completion)]
    assert prompt[-1].content == "Stage A Write: Write 42. Rubric: written?. Recovery: Try again."
    assert one.episode.rollout.policy_tokens == len(mine) and one.episode.rollout.turns == 2


def test_budgets_end_a_rollout_and_what_was_done_still_counts(chat: ChatFormat, notes: Make) -> None:
    _, spec, state = notes(stage_turns=1)
    (one,) = played(chat, spec, state, [WRITE])
    assert (one.episode.rollout.end, one.reward.value) == ("turns", 1.0)
    assert one.episode.rollout.messages[-1].role == "tool", "the last call is carried out"
    _, spec, state = notes(turn_tokens=5)
    (one,) = played(chat, spec, state, [WRITE])
    assert (one.episode.rollout.end, one.reward.value) == ("tokens", 0.0)
    assert one.episode.rollout.policy_tokens == 5 and one.episode.rollout.receipts == ()
    _, spec, state = notes(response_tokens=121)
    (one,) = played(chat, spec, state, [WRITE, END])
    assert (one.episode.rollout.end, one.reward.value, one.episode.rollout.turns) == ("context", 1.0, 1)
    long = state.model_copy(update={"messages": (Message(role="user", content="x " * 600),)})
    (one,) = played(chat, spec, long, [])
    assert (one.episode.rollout.end, one.episode.rollout.turns, one.episode.tokens.completion) == ("context", 0, [])


def test_a_sandbox_that_fails_us_makes_a_lost_rollout_and_no_zero(
    chat: ChatFormat, notes: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, spec, state = notes()
    pool = lab.run(lab.pool())
    acquire = pool.acquire
    left = iter([True, False])

    async def unlucky(ref: Any) -> Any:
        if next(left):
            raise SandboxUnavailable("the sandbox died")
        return await acquire(ref)

    monkeypatch.setattr(pool, "acquire", unlucky)
    lost, fine = played(chat, spec, state, [WRITE, END], [WRITE, END])
    assert (lost.episode.rollout.end, lost.reward.value) == ("lost", None)
    assert lost.reward.reason == "rollout lost: the sandbox died"
    assert fine.reward.value == 1.0


def test_touching_what_was_given_is_worth_nothing(chat: ChatFormat, notes: Make) -> None:
    _, spec, state = notes()
    (one,) = played(chat, spec, state, [call("open('given/x', 'w').write('9'); open('done', 'w').write('42')"), END])
    assert one.reward.value == 0.0 and one.reward.breach == "protected path given/x was changed"


def test_whatever_a_policy_says_and_prints_its_receipts_hold(chat: ChatFormat, notes: Make) -> None:
    """Were there a way to break the chain from inside, a policy could void its bad rollouts."""
    lab, spec, state = notes(turn_tokens=200)
    codes = (
        "import os; os.write(1, bytes(range(256)) * 99); os.write(2, b'\\xed\\xa0\\x80')",
        "print('\\x00', chr(0x1f600), chr(0x2028))",
        "open('receipts.json', 'w').write('[{\"seq\": 0}]'); import os; os.kill(os.getpid(), 9)",
        "x = '\x07\u2028\U0001f600'",
    )
    for one in played(chat, spec, state, *([call(code), END] for code in codes)):
        receipts = one.episode.rollout.receipts
        assert len(receipts) == 1 and verify_chain(lab.key, receipts)
        assert one.reward.value == 0.0, "it did nothing, and that is worth nothing, not null"


def test_a_state_of_another_run_is_not_scored(chat: ChatFormat, notes: Make) -> None:
    _, spec, state = notes()
    (first,) = played(chat, spec, state, [WRITE, END])
    foreign = state.model_copy(update={"receipts": first.episode.rollout.receipts})
    other = spec.model_copy(update={"key": "cd" * 32})
    (mine,), (theirs,) = (played(chat, one, foreign, [WRITE, END]) for one in (spec, other))
    assert mine.reward.value == 1.0
    assert theirs.reward.value is None and theirs.reward.reason.startswith("the chain of receipts is broken")


def test_a_malformed_call_is_answered_and_leaves_no_receipt(chat: ChatFormat, notes: Make) -> None:
    _, spec, state = notes()
    arguments = {"language": "r", "code": "1"}
    odd = Message(role="assistant", tool_calls=(ToolCall(name="execute_code", arguments=arguments),))
    (one,) = played(chat, spec, state, [odd, END])
    assert one.episode.rollout.receipts == ()
    assert one.episode.rollout.messages[1].content.startswith("error: execute_code needs")


def test_labs_close_twice_and_open_again(notes: Make) -> None:
    lab, spec, _ = notes()
    close_labs()
    close_labs()
    assert lab_for(spec) is not lab
    assert asyncio.iscoroutinefunction(lab.pool) and EXECUTE_CODE.name == "execute_code"
