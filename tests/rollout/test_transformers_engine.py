from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
import torch

from bat_core.rollout.engine import Sampled, Session, attach, attached
from bat_core.rollout.transformers_engine import TransformersEngine

PROMPTS = [[5, 6, 7, 8, 9], [10, 11], [12, 13, 14, 15, 16, 17, 18]]


@pytest.fixture
def engine(model: Any, tokenizer: Any) -> TransformersEngine:
    return TransformersEngine(model, tokenizer, 0.7)


def full_logprobs(model: Any, ids: Sequence[int], temperature: float) -> torch.Tensor:
    """Log-probabilities of every next token by one fresh forward pass over the whole sequence."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(ids)])).logits[0].double()
    return torch.log_softmax(logits / temperature, -1)


async def drive(
    session: Session, slot: int, prompt: Sequence[int], shown: Sequence[Sequence[int]], limit: int
) -> tuple[list[int], list[tuple[int, Sampled]]]:
    """Sample a turn after the prompt and after each observation; return all ids and where each turn begins."""
    context, turns = list(prompt), []
    new: Sequence[int] = prompt
    for observation in [*shown, None]:
        turn = await session.sample(slot, new, limit)
        turns.append((len(context), turn))
        context += turn.ids
        if observation is not None:
            context += observation
            new = observation
    session.leave(slot)
    return context, turns


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


def observations(slot: int, count: int) -> list[list[int]]:
    rng = random.Random(slot)
    return [[rng.randrange(3, 300) for _ in range(rng.randrange(1, 9))] for _ in range(count)]


def test_logprobs_of_the_growing_cache_are_those_of_a_fresh_forward_pass(
    engine: TransformersEngine, model: Any
) -> None:
    """Several slots, prompts and turns of different lengths, slots that leave early."""

    async def all_slots() -> Any:
        session = engine.open([1, 2, 3, 4, 5])
        prompts = [PROMPTS[0], PROMPTS[0], PROMPTS[1], PROMPTS[2], PROMPTS[1]]
        return await asyncio.gather(
            *(drive(session, s, prompts[s], observations(s, 1 + s % 3), 4 + s) for s in range(5))
        )

    worst = 0.0
    for context, turns in run(all_slots()):
        expected = full_logprobs(model, context, 0.7)
        for begin, turn in turns:
            assert len(turn.ids) == len(turn.logprobs) > 0
            for offset, (token, logprob) in enumerate(zip(turn.ids, turn.logprobs, strict=True)):
                worst = max(worst, abs(logprob - float(expected[begin + offset - 1, token])))
    assert worst < 1e-5


def test_a_slots_tokens_do_not_depend_on_its_batch_mates(engine: TransformersEngine) -> None:
    async def among(seeds: Sequence[int], slot: int) -> Any:
        session = engine.open(seeds)
        return (
            await asyncio.gather(
                *(
                    drive(
                        session,
                        s,
                        PROMPTS[0] if s == slot else PROMPTS[s % 3],
                        observations(9 if s == slot else s, 2),
                        6,
                    )
                    for s in range(len(seeds))
                )
            )
        )[slot]

    alone = run(among([42], 0))
    first = run(among([42, 1, 2, 3], 0))
    last = run(among([7, 8, 42], 2))
    assert alone[0] == first[0] == last[0]
    for one, other in ((alone, first), (alone, last)):
        for (_, mine), (_, theirs) in zip(one[1], other[1], strict=True):
            assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)


def test_members_of_a_group_share_one_prefill(
    engine: TransformersEngine, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, ...]] = []
    forward = model.model.forward

    def counting(*args: Any, **kwargs: Any) -> Any:
        shapes.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    monkeypatch.setattr(model.model, "forward", counting)

    async def group() -> Any:
        session = engine.open([1, 2, 3, 4, 5, 6])
        prompts = [PROMPTS[0]] * 4 + [PROMPTS[2]] * 2
        return await asyncio.gather(*(drive(session, s, prompts[s], [[20, 21]], 3) for s in range(6)))

    results = run(group())
    assert shapes[0] == (2, 7), "two distinct prompts, the shorter one padded"
    assert all(shape == (6, 1) or shape[0] == 6 for shape in shapes[1:])
    assert len({tuple(turns[0][1].ids) for _, turns in results[:4]}) > 1, "same prompt, other seeds, other tokens"


def test_the_rows_of_slots_that_left_are_dropped(
    engine: TransformersEngine, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    forward = model.model.forward

    def counting(*args: Any, **kwargs: Any) -> Any:
        rows.append(kwargs["input_ids"].shape[0])
        return forward(*args, **kwargs)

    monkeypatch.setattr(model.model, "forward", counting)

    async def leaving() -> None:
        session = engine.open([1, 2, 3, 4])
        session.leave(3)  # before it ever asked
        await asyncio.gather(*(drive(session, s, PROMPTS[s], [[20]] * s, 2) for s in range(3)))
        session.leave(0)

    run(leaving())
    assert rows[0] == 3 and rows[-1] == 1 and sorted(rows, reverse=True) == rows


def test_a_slot_that_is_cancelled_does_not_hold_up_the_others(engine: TransformersEngine) -> None:
    async def cancelled() -> Sampled:
        session = engine.open([1, 2])
        waiting = asyncio.ensure_future(session.sample(0, PROMPTS[0], 2))
        await asyncio.sleep(0)
        waiting.cancel()
        session.leave(0)
        return await session.sample(1, PROMPTS[1], 2)

    assert len(run(cancelled()).ids) > 0


def test_a_failed_forward_pass_reaches_every_waiting_slot(engine: TransformersEngine) -> None:
    async def failing() -> list[Any]:
        session = engine.open([1, 2])
        return await asyncio.gather(*(session.sample(s, [10**9], 2) for s in range(2)), return_exceptions=True)

    assert all(isinstance(error, IndexError | RuntimeError) for error in run(failing()))


def test_the_limit_ends_a_turn_and_so_does_the_end_token(engine: TransformersEngine, tokenizer: Any) -> None:
    async def many() -> list[Sampled]:
        session = engine.open(list(range(64)))
        return await asyncio.gather(*(session.sample(s, PROMPTS[0], 60) for s in range(64)))

    for turn in run(many()):
        assert turn.finished == (turn.ids[-1] == tokenizer.eos_token_id)
        assert turn.finished or len(turn.ids) == 60
        assert tokenizer.eos_token_id not in turn.ids[:-1]


def test_tokens_come_as_often_as_their_probability_says(engine: TransformersEngine, model: Any) -> None:
    async def first_tokens() -> list[Sampled]:
        session = engine.open(list(range(600)))
        return await asyncio.gather(*(session.sample(s, PROMPTS[1], 1) for s in range(600)))

    expected = full_logprobs(model, PROMPTS[1], 0.7)[-1].exp()
    counts = torch.zeros_like(expected)
    for turn in run(first_tokens()):
        counts[turn.ids[0]] += 1
    for token in expected.topk(5).indices.tolist():
        p = float(expected[token])
        assert abs(float(counts[token]) / 600 - p) < 4 * math.sqrt(p * (1 - p) / 600)


def test_the_models_mode_is_left_as_it_was(engine: TransformersEngine, model: Any) -> None:
    model.train()
    try:
        run(drive(engine.open([1]), 0, PROMPTS[0], [], 2))
        assert model.training
    finally:
        model.eval()


def test_an_engine_is_known_by_name(engine: TransformersEngine) -> None:
    attach("test", engine)
    assert attached("test") is engine
