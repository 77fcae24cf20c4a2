"""Near-copies: tasks that say what another one says already are left out, by MinHash over normalised prompts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bat_core.bank.tables import Prompt
from bat_core.hooks.contract import StageContract
from bat_core.model.base import JsonObject, digest_of
from bat_core.model.task import Task

WORDS = 3
"""Words a shingle."""
LEAST_WORDS = 24
"""A domain that says less than this of a task tells its tasks apart by other things than words: they are no copies."""
PERMUTATIONS = 64
SCHEME = "affine32"
FOUND_RATHER = (0.1, 0.9)
"""Weights of false alarms and misses in the index: what it finds is compared, what it misses is lost."""
WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
HEX = re.compile(r"[0-9a-f]{12,}")


def prompt_text(contract: StageContract, task: Task, visible: JsonObject, shared: Iterable[str] = ()) -> str:
    """Return all that a policy is told or can read about `task`, without what is the same in all tasks.

    Args:
        contract: Its stages.
        task: The task.
        visible: Its public part with the text files of its workspace.
        shared: Texts that every task's workspace holds, such as skills.
    """
    same = set(shared)
    texts = [text for _, text in sorted(visible["files"].items()) if text not in same]
    public = [str(value) for _, value in sorted(task.public.items())]
    return "\n".join([contract.introduction(task), *public, *texts]).replace(task.id, " ")


def normalised(text: str) -> list[str]:
    """Return the words of a text: one width and case, no punctuation, no hashes, which say nothing."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for word in WORD.findall(folded) if not HEX.fullmatch(word)]


def prompt_of(task: str, text: str) -> Prompt:
    """Return the digests of a task's prompt."""
    words = normalised(text)
    if len(words) < LEAST_WORDS:
        return Prompt(task, digest_of(words), "")
    shingles = {" ".join(words[i : i + WORDS]).encode() for i in range(max(1, len(words) - WORDS + 1))}
    return Prompt(task, digest_of(words), _sketch(shingles))


class Pool:
    """What is there already, searched by similarity.

    Args:
        similar: Jaccard similarity (of shingles, estimated) from which a task is a near-copy; above 1 nothing is.
        known: Prompts that are there already.
    """

    def __init__(self, similar: float, known: Sequence[Prompt] = ()) -> None:
        from datasketch import MinHashLSH

        self._similar = similar
        self._ids: set[str] = set()
        self._exact: dict[str, str] = {}
        self._sketches: dict[str, Any] = {}
        self._index = MinHashLSH(threshold=min(similar, 0.9), num_perm=PERMUTATIONS, weights=FOUND_RATHER)
        for prompt in known:
            self.add(prompt)

    def add(self, prompt: Prompt) -> None:
        """Take a prompt in."""
        key = prompt.task
        self._ids.add(key)
        if not prompt.sketch or key in self._sketches:
            return
        self._exact.setdefault(prompt.prompt, key)
        self._sketches[key] = _loaded(prompt.sketch)
        self._index.insert(key, self._sketches[key])

    def copy_of(self, prompt: Prompt) -> str:
        """Return what `prompt` is a near-copy of, with the similarity; empty if of nothing."""
        if prompt.task in self._ids:
            return f"the id of {prompt.task} again"
        if self._similar > 1 or not prompt.sketch:
            return ""
        if prompt.prompt in self._exact:
            return f"the same words as {self._exact[prompt.prompt]}"
        mine = _loaded(prompt.sketch)
        found = sorted(str(key) for key in self._index.query(mine))
        best = max(((float(mine.jaccard(self._sketches[key])), key) for key in found), default=(0.0, ""))
        return f"{best[0]:.2f} like {best[1]}" if best[0] >= self._similar else ""

    def fresh(self, prompts: Iterable[Prompt]) -> Iterator[str]:
        """Yield for each prompt what it is a copy of, taking in those that are of nothing."""
        for prompt in prompts:
            found = self.copy_of(prompt)
            if not found:
                self.add(prompt)
            yield found


def _sketch(shingles: Iterable[bytes]) -> str:
    from datasketch import MinHash

    made = MinHash(num_perm=PERMUTATIONS, seed=1, scheme=SCHEME)
    made.update_batch(sorted(shingles))
    return bytes(made.hashvalues.astype("<u4").tobytes()).hex()


def _loaded(sketch: str) -> Any:
    import numpy
    from datasketch import MinHash

    values = numpy.frombuffer(bytes.fromhex(sketch), dtype="<u4").astype(numpy.uint32)
    return MinHash(num_perm=PERMUTATIONS, seed=1, hashvalues=values, scheme=SCHEME)
