"""Auditing a run on the evaluator's side: was anything held out in what it was trained on?

It looks at every state and slice of the bank with the files of its workspaces, at every rollout that was trained on,
and at states and slices once more as the run's tokenizer gives them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bat_core.bank.store import Bank, read
from bat_core.errors import LeakageError
from bat_core.evolve.alike import alike
from bat_core.evolve.records import read_rollouts
from bat_core.leakage.index_file import read_index
from bat_core.leakage.keys import key_of
from bat_core.leakage.strict import loads
from bat_core.model.base import JsonObject
from bat_core.model.leakage import Checked
from bat_core.model.message import Message
from bat_core.sandboxes.snapshots import SnapshotStore

TEXT_LIMIT = 1 << 20
_TOGETHER = 64
Sample = tuple[str, Any]


def audit_run(run: Path, index: Path, heldout: Path | None = None, encoder: Path | None = None) -> JsonObject:
    """Return verdicts on what a run was trained on; only samples that are not a pass are named.

    Args:
        run: Its directory, which stays as it is.
        index: Index file of the held-out side.
        heldout: Held-out items, needed for the comparison by meaning.
        encoder: Folder of an encoder model for that comparison.

    Raises:
        LeakageError: The run has no complete bank, or the index can't be read.
    """
    if (encoder is None) != (heldout is None):
        raise LeakageError("a comparison by meaning needs both --embeddings and --heldout", remedy="give both or none")
    panel, about = read_index(index, key_of(index))
    bank = read(run / "bank")
    looked_at = {"states": len(bank.states), "slices": len(bank.slices), "files": 0, "rollouts": 0, "token texts": 0}
    counts = {"pass": 0, "review": 0, "block": 0}
    found: list[Checked] = []
    for batch in _batched(_samples(run, bank, looked_at)):
        for one in panel.check_all(batch):
            counts[one.verdict] += 1
            found += [one] if one.verdict != "pass" else []
    close = alike(_texts(bank), heldout, encoder) if heldout is not None and encoder is not None else []
    return {
        "samples": [one.model_dump(mode="json") for one in found],
        "counts": counts,
        "looked_at": looked_at,
        "alike": close,
        "overrides": list(bank.report.overrides),
        "index": about["index"],
    }


def _samples(run: Path, bank: Bank, looked_at: dict[str, int]) -> Iterator[Sample]:
    """Yield all that was trained on, as one sample each."""
    store = SnapshotStore(run / "bank" / "snapshots")
    seen: set[str] = set()
    for state in bank.states:
        value = state.model_dump(mode="json")
        value["task"].pop("private", None)
        yield f"state {state.id}", value
        if state.snapshot.root not in seen:
            seen.add(state.snapshot.root)
            for path, data in store.files(state.snapshot).items():
                looked_at["files"] += 1
                yield f"file {state.snapshot.root[:19]}", _file(path, data)
    for one in bank.slices:
        yield f"slice {one.id}", one.model_dump(mode="json")
    yield from _rollouts(run, looked_at)
    yield from _tokens(run, bank, looked_at)


def _file(path: str, data: bytes) -> JsonObject:
    """Return a file as a sample; of one that is no text its name and its readable strings."""
    return {"path": path, "text": data[:TEXT_LIMIT].decode(errors="replace")}


def _rollouts(run: Path, looked_at: dict[str, int]) -> Iterator[Sample]:
    for folder in sorted((run / "rounds").glob("*")):
        for number, row in enumerate(read_rollouts(folder)):
            looked_at["rollouts"] += 1
            yield f"rollout {folder.name}/{number}", loads(row["rollout"])


def _tokens(run: Path, bank: Bank, looked_at: dict[str, int]) -> Iterator[Sample]:
    """Yield what is left of slices and states as the run's tokens: a tokenizer may join what a text kept apart."""
    tokenizer = _tokenizer(run)
    if tokenizer is None:
        return
    for name, messages in _conversations(bank):
        looked_at["token texts"] += 1
        text = "\n".join(message.content for message in messages)
        yield f"tokens {name}", {"text": tokenizer.decode(tokenizer.encode(text).ids)}


def _conversations(bank: Bank) -> Iterator[tuple[str, Sequence[Message]]]:
    for state in bank.states:
        yield f"state {state.id}", state.messages
    for one in bank.slices:
        yield f"slice {one.id}", (*one.messages, one.target)


def _tokenizer(run: Path) -> Any:
    """Return the tokenizer of any policy of the run, None where there is none."""
    for path in sorted(run.rglob("tokenizer.json")):
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(path))
    return None


def _texts(bank: Bank) -> Iterator[Sample]:
    """Yield texts to compare by meaning: instructions of tasks and targets of slices."""
    for state in bank.states:
        for message in state.messages:
            if message.role in ("system", "user") and message.content:
                yield f"state {state.id}", message.content
    for one in bank.slices:
        if one.target.content:
            yield f"slice {one.id}", one.target.content


def _batched(samples: Iterator[Sample]) -> Iterator[Sequence[Sample]]:
    batch: list[Sample] = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == _TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch
