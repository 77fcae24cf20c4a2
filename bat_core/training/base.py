"""A base policy for any domain, built from that domain's own expert logs, slips included.

GRPO sharpens what a policy can sample already; it does not build a skill in minutes. So a tiny policy first
learns the form of its domain's work - tool calls, copying names, what tends to follow what - from logs of an
expert that errs now and then, with all names exchanged at random, so that names carry no answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.produce import LogOrder, record
from bat_core.bank.self_instruct import SelfInstruct
from bat_core.config.schema import PolicyConfig
from bat_core.hooks.domain import Domain
from bat_core.hooks.executor import Executor
from bat_core.model.base import digest_of
from bat_core.model.message import Message, ToolCall
from bat_core.model.task import Stratum
from bat_core.model.training import PolicyRef
from bat_core.rollout.chat import ChatFormat, as_template
from bat_core.rollout.lab import LabSpec
from bat_core.training.checkpoint import save
from bat_core.training.sft import IGNORED, Row, SftSettings, run_sft

RECORD = f"{record.__module__}:{record.__name__}"
Conversation = Sequence[Message]
LOG_SEED = 0x0BA5E
"""Logs for the base come from their own tasks, whatever the run's seed."""


def build_base(
    domain: Domain,
    policy: PolicyConfig,
    lab: LabSpec,
    executor: Executor,
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda phase, done, total: None,
) -> PolicyRef:
    """Build, save and return the base policy: logs, tokenizer, pretraining."""
    logs = record_logs(domain, policy, lab, executor, progress)
    rng = random.Random(LOG_SEED)
    texts = [conversation for _, conversation in logs]
    tokenizer = make_tokenizer(domain, policy, [c for _, c in renamed(logs, domain.names(), 1, rng)] + texts)
    chat = ChatFormat(tokenizer)
    rows = [conversation_row(chat, c) for _, c in renamed(logs, domain.names(), policy.renames, rng)]
    rows = [row for row in rows if len(row["input_ids"]) <= policy.context]
    from bat_core.training.tiny import tiny_model

    model = tiny_model(tokenizer, policy, LOG_SEED)
    settings = SftSettings(
        steps=policy.steps, batch=policy.batch, micro_batch=policy.batch, lr=policy.lr, seed=0, warmup=20, schedule="cosine"
    )
    run_sft(model, tokenizer, rows, settings, folder.parent, lambda d, t, _m: progress("pretraining", d, t))
    return save(model, tokenizer, folder)


def recipe_digest(domain_name: str, version: str, policy: PolicyConfig) -> str:
    """Return the key under which a base is cached: the recipe and the domain's version."""
    return digest_of(["base", domain_name, version, policy.model_dump(exclude={"base"})])


def record_logs(
    domain: Domain, policy: PolicyConfig, lab: LabSpec, executor: Executor, progress: Callable[[str, int, int], None]
) -> list[tuple[str, Conversation]]:
    """Return (focus, conversation) pairs of expert runs with slips."""
    wanted = requests(domain.contract(), policy.logs, LOG_SEED)
    orders = [LogOrder(lab, task) for task in make_tasks(SelfInstruct(domain), wanted)]
    logs: list[tuple[str, Conversation]] = []
    for n, pairs in enumerate(executor.map(RECORD, orders), 1):
        logs += pairs
        progress("expert logs", n, len(orders))
    return logs


def renamed(
    logs: Sequence[tuple[str, Conversation]], names: Sequence[str], copies: int, rng: random.Random
) -> list[tuple[str, Conversation]]:
    """Return each log `copies` times, its names exchanged consistently at random."""
    if not names:
        return list(logs) * copies
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    result = []
    for _ in range(copies):
        for focus, conversation in logs:
            shuffled = list(names)
            rng.shuffle(shuffled)
            other = dict(zip(names, shuffled, strict=True))
            swap = lambda text, other=other: pattern.sub(lambda m: other[m.group()], text)  # noqa: E731
            result.append((focus, [_swapped(message, swap) for message in conversation]))
    return result


def _swapped(message: Message, swap: Callable[[str], str]) -> Message:
    calls = tuple(
        ToolCall(name=c.name, arguments={k: swap(v) if isinstance(v, str) else v for k, v in c.arguments.items()})
        for c in message.tool_calls
    )
    return message.model_copy(update={"content": swap(message.content), "tool_calls": calls})


def make_tokenizer(domain: Domain, policy: PolicyConfig, conversations: Sequence[Conversation]) -> Any:
    """Return a tokenizer trained on the conversations; the contract's fixed texts are one token each."""
    from bat_core.training.tokenizer import TEMPLATE, train_tokenizer

    rendered = (_render(TEMPLATE, conversation) for conversation in conversations)
    return train_tokenizer(rendered, domain.names(), phrases(domain), policy.vocabulary)


def phrases(domain: Domain) -> list[str]:
    """Return the contract's fixed texts: goals, criteria, recovery steps."""
    contract = domain.contract()
    texts = {text for stage in contract.stages() for text in (stage.goal, *stage.recovery)}
    for request in requests(contract, 4 * len(contract.stages()) * len(contract.tracks()), LOG_SEED):
        for task in domain.synthesizer().synthesize(request):
            for stage in contract.stages():
                for stratum in Stratum:
                    texts |= {item.criterion for item in contract.rubric(task, stage.id, stratum).items}
    return sorted(texts)


def _render(template: str, conversation: Conversation) -> str:
    from jinja2 import Environment

    environment = Environment()
    environment.filters["tojson"] = _to_json
    text: str = environment.from_string(template).render(messages=[as_template(m) for m in conversation])
    return text


def _to_json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def conversation_row(chat: ChatFormat, conversation: Conversation) -> Row:
    """Return a whole conversation with loss on every assistant turn, token for token as a rollout would build it."""
    first = next(i for i, message in enumerate(conversation) if message.role == "assistant")
    ids = chat.prompt_ids(conversation[:first])
    labels = [IGNORED] * len(ids)
    shown: list[Message] = []
    for message in conversation[first:]:
        if message.role != "assistant":
            shown.append(message)
            continue
        between = chat.between_ids(shown) if shown else []
        target = chat.target_ids(message)
        ids += between + target
        labels += [IGNORED] * len(between) + target
        shown = []
    return {"input_ids": ids, "labels": labels}
