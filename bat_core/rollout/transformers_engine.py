"""Generation in this process with a growing KV cache, in lockstep over the slots of a session."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from bat_core.rollout.engine import Engine, Sampled, Session


class TransformersEngine(Engine):
    """Samples from a causal language model of the transformers library.

    Args:
        model: A causal LM with a plain KV cache (optionally under a PEFT wrapper).
        tokenizer: Its tokenizer.
        temperature: Sampling temperature; log-probabilities are taken at it.
    """

    def __init__(self, model: Any, tokenizer: Any, temperature: float) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.context = int(model.config.max_position_embeddings)
        self.temperature = temperature
        self.lock = asyncio.Lock()

    def open(self, seeds: Sequence[int]) -> Session:
        """Open a session with one slot a seed."""
        return _Lockstep(self, seeds)

    @property
    def body(self) -> tuple[Any, Any]:
        """The decoder and its head, below any PEFT wrapper."""
        model = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        return model.model, model.lm_head


@dataclass
class _Request:
    ids: list[int]
    limit: int
    answer: asyncio.Future[Sampled]


class _Lockstep(Session):
    """Runs a turn as soon as every slot that is still here has asked for one."""

    def __init__(self, engine: TransformersEngine, seeds: Sequence[int]) -> None:
        self._engine = engine
        self._here = set(range(len(seeds)))
        self._waiting: dict[int, _Request] = {}
        self._batch = _Batch(engine, seeds)
        self._running: set[asyncio.Task[None]] = set()

    async def sample(self, slot: int, new_ids: Sequence[int], max_tokens: int) -> Sampled:
        request = _Request(list(new_ids), max_tokens, asyncio.get_running_loop().create_future())
        self._waiting[slot] = request
        self._run_if_complete()
        return await request.answer

    def leave(self, slot: int) -> None:
        self._here.discard(slot)
        self._waiting.pop(slot, None)
        self._run_if_complete()

    def _run_if_complete(self) -> None:
        if self._here and self._here == set(self._waiting):
            requests, self._waiting = self._waiting, {}
            task = asyncio.ensure_future(self._run(requests))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, requests: dict[int, _Request]) -> None:
        try:
            async with self._engine.lock:
                turns = await asyncio.to_thread(
                    self._batch.turn, {slot: (r.ids, r.limit) for slot, r in sorted(requests.items())}
                )
        except Exception as error:  # noqa: BLE001  # boundary: a failed forward pass must reach every waiting slot
            for request in requests.values():
                if not request.answer.done():
                    request.answer.set_exception(error)
            return
        for slot, request in requests.items():
            if not request.answer.done():
                request.answer.set_result(turns[slot])


@dataclass
class _Batch:
    """The tensors of a session: one cache row a slot; rows of slots that left are dropped."""

    engine: TransformersEngine
    seeds: Sequence[int]
    rows: list[int] = field(default_factory=list)
    cache: Any = None
    mask: torch.Tensor | None = None
    position: torch.Tensor | None = None
    carried: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = {slot: random.Random(seed) for slot, seed in enumerate(self.seeds)}

    def turn(self, requests: dict[int, tuple[list[int], int]]) -> dict[int, Sampled]:
        """Feed each slot its new ids and sample one turn for all of them."""
        was_training = self.engine.model.training
        self.engine.model.eval()
        with torch.inference_mode():
            chunks = {slot: [*self._carry(slot), *ids] for slot, (ids, _) in requests.items()}
            logits = self._start(chunks) if self.cache is None else self._go_on(chunks)
            turns = self._decode(logits, {slot: limit for slot, (_, limit) in requests.items()})
        self.engine.model.train(was_training)
        return turns

    def _carry(self, slot: int) -> list[int]:
        return [self.carried.pop(slot)] if slot in self.carried else []

    def _start(self, chunks: dict[int, list[int]]) -> torch.Tensor:
        """Encode each distinct prompt once (the K rollouts of a group share it) and spread it over the slots."""
        from transformers import DynamicCache

        self.rows = list(chunks)
        prompts = list(dict.fromkeys(tuple(ids) for ids in chunks.values()))
        where = torch.tensor([prompts.index(tuple(ids)) for ids in chunks.values()])
        device = self.engine.model.device
        self.cache = DynamicCache(config=self.engine.model.config)
        self.mask = torch.zeros(len(prompts), 0, dtype=torch.long, device=device)
        self.position = torch.zeros(len(prompts), dtype=torch.long, device=device)
        logits = self._feed([list(prompt) for prompt in prompts])
        self._select(where.to(device))
        return logits[where.to(device)]

    def _go_on(self, chunks: dict[int, list[int]]) -> torch.Tensor:
        keep = [i for i, slot in enumerate(self.rows) if slot in chunks]
        if len(keep) < len(self.rows):
            self._select(torch.tensor(keep, device=self.engine.model.device))
            self.rows = [self.rows[i] for i in keep]
        return self._feed([chunks[slot] for slot in self.rows])

    def _select(self, index: torch.Tensor) -> None:
        assert self.mask is not None and self.position is not None
        self.cache.batch_select_indices(index)
        self.mask, self.position = self.mask[index], self.position[index]

    def _feed(self, chunks: list[list[int]]) -> torch.Tensor:
        """Left-pad the chunks and return the logits after the last token of each."""
        longest, pad = max(map(len, chunks)), self.engine.tokenizer.pad_token_id or 0
        device = self.engine.model.device
        ids = torch.tensor([[pad] * (longest - len(c)) + c for c in chunks], device=device)
        new = torch.tensor([[0] * (longest - len(c)) + [1] * len(c) for c in chunks], device=device)
        return self._forward(ids, new)

    def _forward(self, ids: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        assert self.mask is not None and self.position is not None
        decoder, head = self.engine.body
        self.mask = torch.cat([self.mask, new], 1)
        positions = (self.position[:, None] + new.cumsum(1) - 1).clamp(min=0)
        self.position = self.position + new.sum(1)
        cache = {_cache_name(type(decoder)): self.cache}
        hidden = decoder(
            input_ids=ids, attention_mask=self.mask, position_ids=positions, use_cache=True, **cache
        ).last_hidden_state[:, -1]
        logits: torch.Tensor = head(hidden).double() / self.engine.temperature
        return logits

    def _decode(self, logits: torch.Tensor, limits: dict[int, int]) -> dict[int, Sampled]:
        eos = self.engine.tokenizer.eos_token_id
        turns = {slot: Sampled([], [], False) for slot in self.rows}
        live = list(self.rows)
        while True:
            ids, logprobs = self._draw(logits)
            for row, slot in enumerate(self.rows):
                if slot not in live:
                    continue
                turns[slot].ids.append(ids[row])
                turns[slot].logprobs.append(logprobs[row])
                if ids[row] == eos or len(turns[slot].ids) >= limits[slot]:
                    live.remove(slot)
                    self.carried[slot] = ids[row]
            if not live:
                break
            feed = torch.tensor([[int(slot in live)] for slot in self.rows], device=logits.device)
            logits = self._forward(torch.tensor([[i] for i in ids], device=logits.device), feed)
        return {slot: turn._replace(finished=turn.ids[-1] == eos) for slot, turn in turns.items()}

    def _draw(self, logits: torch.Tensor) -> tuple[list[int], list[float]]:
        """Sample by inverse transform with each slot's own random numbers: a slot doesn't depend on its batch."""
        logprobs = torch.log_softmax(logits, -1)
        draws = torch.tensor(
            [[self.random[slot].random()] for slot in self.rows], device=logits.device, dtype=logits.dtype
        )
        index = (logprobs.exp().cumsum(-1) < draws).sum(-1).clamp(max=logits.shape[-1] - 1)
        return index.tolist(), logprobs.gather(1, index[:, None])[:, 0].tolist()


def _cache_name(decoder: type[Any]) -> str:
    """Return what the decoder calls its cache: the library is renaming `past_key_values` to `cache`."""
    return "cache" if "cache" in inspect.signature(decoder.forward).parameters else "past_key_values"
