"""A base policy for any domain, built from that domain's own logs, slips included.

GRPO sharpens what a policy can sample already; it does not build a skill in minutes. So a tiny policy first
learns the form of its domain's work - tool calls, copying names, what tends to follow what - from logs of an
expert and of a novice who errs now and then, with all names exchanged at random, so that names carry no answers.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.produce import LogOrder, record
from bat_core.bank.self_instruct import SelfInstruct
from bat_core.config.schema import PolicyConfig
from bat_core.hooks.domain import Domain
from bat_core.hooks.executor import Executor
from bat_core.model.base import digest_of
from bat_core.model.message import Message
from bat_core.model.stage import E2E
from bat_core.model.task import Stratum
from bat_core.model.training import PolicyRef
from bat_core.rollout.chat import ChatFormat, as_template
from bat_core.rollout.lab import LabSpec
from bat_core.training.checkpoint import save
from bat_core.training.sft import IGNORED, Row

RECORD = f"{record.__module__}:{record.__name__}"
Conversation = Sequence[Message]
CORPUS = 160
"""Conversations that the tokenizer is trained on."""
SHORT = ((0.12, 130), (0.25, 220))
"""Until which share of the steps conversations are cut to how many tokens."""
TOGETHER = 4
"""Batches that are drawn at once, so that rows of like length can stand together."""
DIGITS = "0123456789"
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
    import torch

    from bat_core.training.copying import write_what_is_read
    from bat_core.training.pretrain import run_pretraining
    from bat_core.training.tiny import tiny_model

    torch.set_num_threads(policy.threads)
    logs = record_logs(domain, policy, lab, executor, progress)
    whole = [conversation for focus, conversation in logs if focus == E2E]
    tokenizer = make_tokenizer(domain, policy, whole[:CORPUS])
    chat = ChatFormat(tokenizer)
    rows = [conversation_row(chat, conversation) for _, conversation in logs]
    words = Words(single_tokens(tokenizer, domain.names()), single_tokens(tokenizer, DIGITS))
    lesson = curriculum(rows, words, policy, random.Random(LOG_SEED))
    model = tiny_model(tokenizer, policy, LOG_SEED)
    write_what_is_read(model, LOG_SEED)
    scratch = folder.with_name(folder.name + ".scratch")
    run_pretraining(model, tokenizer, lesson, policy, scratch, lambda done, total, _: progress("base", done, total))
    shutil.rmtree(scratch, ignore_errors=True)
    return save(model.to(torch.bfloat16), tokenizer, folder)


def recipe_digest(domain_name: str, version: str, policy: PolicyConfig) -> str:
    """Return the key under which a base is cached: the recipe and the domain's version."""
    return digest_of(["base", domain_name, version, policy.model_dump(exclude={"base"})])


def record_logs(
    domain: Domain, policy: PolicyConfig, lab: LabSpec, executor: Executor, progress: Callable[[str, int, int], None]
) -> list[tuple[str, Conversation]]:
    """Return (focus, conversation) pairs: one run of the expert for every two of the novice."""
    wanted = requests(domain.contract(), policy.logs, LOG_SEED)
    tasks = make_tasks(SelfInstruct(domain), wanted)
    orders = [LogOrder(lab, task, novice=n % 3 > 0) for n, task in enumerate(tasks)]
    logs: list[tuple[str, Conversation]] = []
    for n, pairs in enumerate(executor.map(RECORD, orders), 1):
        logs += pairs
        progress("expert logs", n, len(orders))
    return logs


class Words(NamedTuple):
    """Ids of what is exchanged at random, each among its own kind."""

    names: list[int]
    digits: list[int]


def single_tokens(tokenizer: Any, words: Sequence[str]) -> list[int]:
    """Return the ids of words that are one token each; only these can be exchanged."""
    encoded = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    return [ids[0] for ids in encoded if len(ids) == 1]


def curriculum(rows: Sequence[Row], words: Words, policy: PolicyConfig, rng: random.Random) -> list[Row]:
    """Return the rows of all batches, words exchanged at random: short beginnings first, whole conversations later.

    Attention finds what to copy among few tokens before it can among many. Rows are drawn in proportion to what they
    teach: every row holds the first stage, few hold the last.
    """
    lesson: list[Row] = []
    weights = [sum(label != IGNORED for label in row["labels"]) for row in rows]
    batches: list[list[Row]] = []
    for step in range(policy.steps):
        length = next((n for until, n in SHORT if step / policy.steps < until), None)
        batches = batches or of_like_length(rng.choices(rows, weights, k=policy.batch * TOGETHER), policy.batch, rng)
        batch = [{key: ids[:length] for key, ids in row.items()} for row in batches.pop()]
        lesson += [exchanged(row, words, rng) for row in batch]
    return lesson


def of_like_length(rows: Sequence[Row], size: int, rng: random.Random) -> list[list[Row]]:
    """Return batches of rows that need little padding, in random order."""
    ordered = sorted(rows, key=lambda row: len(row["input_ids"]))
    batches = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    rng.shuffle(batches)
    return batches


def exchanged(row: Row, words: Words, rng: random.Random) -> Row:
    """Return a row with its names exchanged consistently, as they carry no answers, and in half of the rows its digits.

    A count that can be guessed is not copied: with other digits only those who look it up are right.
    """
    other = dict(zip(words.names, rng.sample(words.names, len(words.names)), strict=True))
    if rng.random() < 0.5:
        other |= zip(words.digits, rng.sample(words.digits, len(words.digits)), strict=True)
    return {key: [other.get(token, token) for token in ids] for key, ids in row.items()}


def make_tokenizer(domain: Domain, policy: PolicyConfig, conversations: Sequence[Conversation]) -> Any:
    """Return a tokenizer trained on the conversations; the contract's fixed texts are one token each."""
    from bat_core.training.tokenizer import TEMPLATE, train_tokenizer

    rendered = (_render(TEMPLATE, conversation) for conversation in conversations)
    return train_tokenizer(rendered, domain.names(), phrases(domain), policy.vocabulary)


def phrases(domain: Domain) -> list[str]:
    """Return the contract's fixed texts (goals, criteria, recovery steps) and what its instructions say around them."""
    contract = domain.contract()
    texts = {text for stage in contract.stages() for text in (stage.goal, *stage.recovery, contract.closing(stage))}
    around: set[str] = set()
    wanted = requests(contract, 4 * len(contract.stages()) * len(contract.tracks()), LOG_SEED)
    for task in make_tasks(domain.synthesizer(), wanted):
        for stage in contract.stages():
            for stratum in Stratum:
                rubric = contract.rubric(task, stage.id, stratum)
                mine = {stage.goal, *(item.criterion for item in rubric.items)}
                cuts = "|".join(re.escape(text) for text in sorted(mine, key=len, reverse=True))
                around |= set(re.split(cuts, contract.instruction(task, stage, rubric)))
                texts |= mine
    return sorted(texts | {text for text in around if len(text) > 1})


def _render(template: str, conversation: Conversation) -> str:
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered, _ = render_jinja_template([[as_template(m) for m in conversation]], chat_template=template)
    return str(rendered[0])


def conversation_row(chat: ChatFormat, conversation: Conversation) -> Row:
    """Return a whole conversation with loss on every assistant turn, by the generation marks of the template."""
    encoded = chat.tokenizer.apply_chat_template(
        [as_template(m) for m in conversation], return_dict=True, return_assistant_tokens_mask=True
    )
    ids, mine = encoded["input_ids"], encoded["assistant_masks"]
    labels = [token if one else IGNORED for token, one in zip(ids, mine, strict=True)]
    return {"input_ids": ids, "labels": labels}
