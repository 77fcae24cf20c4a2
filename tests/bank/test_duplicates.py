"""Near-copies by MinHash against the plain Jaccard similarity."""

from __future__ import annotations

import random

import pytest

from bat_core.bank.builder import _visible
from bat_core.bank.duplicates import PERMUTATIONS, WORDS, Pool, _loaded, normalised, prompt_of, prompt_text
from bat_core.bank.plan import make_tasks, requests
from bat_core.registry import load_domain

DOMAIN = load_domain("medimaging")
WORDLIST = [f"{a}{b}" for a in ("ba", "ko", "lu", "mi", "ne") for b in ("ra", "st", "vo", "zi", "pe", "nu")]


def text(rng: random.Random, words: int = 160) -> list[str]:
    return [rng.choice(WORDLIST) for _ in range(words)]


def jaccard(one: list[str], other: list[str]) -> float:
    a, b = ({tuple(t[i : i + WORDS]) for i in range(len(t) - WORDS + 1)} for t in (one, other))
    return len(a & b) / len(a | b)


def test_case_width_hashes_and_punctuation_make_no_other_prompt() -> None:
    plain = prompt_of("a", "Mark the Velum, at 2.5 mm. sha 0697d8d4adfc4121")
    assert plain.sketch == "" and prompt_of("a", "word " * 24).sketch, "too little said to be anybody's copy"
    assert list(Pool(0.8).fresh([plain, prompt_of("b", "Mark the Velum, at 2.5 mm."), plain])) == [
        "", "", "the id of a again",
    ]  # fmt: skip
    assert normalised("Mark the Velum, at 2.5 mm.") == ["mark", "the", "velum", "at", "2.5", "mm"]
    assert prompt_of("b", "mark  the velum at \uff12.\uff15 mm! SHA: ffffffffffffffff").prompt == plain.prompt
    assert prompt_of("b", "mark the velum at 3.5 mm. sha 0697d8d4adfc4121").prompt != plain.prompt


def test_the_estimate_is_the_plain_similarity_within_its_error() -> None:
    rng = random.Random(1)
    for changed in (0, 4, 10, 40, 160):
        one = text(rng)
        other = list(one)
        for place in rng.sample(range(len(one)), changed):
            other[place] = rng.choice(WORDLIST)
        sketches = [_loaded(prompt_of(str(n), " ".join(t)).sketch) for n, t in enumerate((one, other))]
        estimate = float(sketches[0].jaccard(sketches[1]))
        assert abs(estimate - jaccard(one, other)) < 4 * 0.5 / PERMUTATIONS**0.5, changed


def test_copies_are_found_in_order_and_nothing_else_is() -> None:
    rng = random.Random(2)
    one, other = text(rng), text(rng)
    near = [*one[:80], "odd", *one[81:]]
    prompts = [prompt_of(name, " ".join(t)) for name, t in (("a", one), ("b", other), ("c", near), ("d", one))]
    found = list(Pool(0.8).fresh(prompts))
    assert found[:2] == ["", ""] and found[2].endswith("like a") and found[3] == "the same words as a"
    assert list(Pool(2.0).fresh(prompts)) == [""] * 4, "above 1 everything stays"
    assert list(Pool(0.8, prompts[:1]).fresh(prompts[2:])) == found[2:], "what is there already counts"
    assert Pool(2.0, prompts[:1]).copy_of(prompts[0]) == "the id of a again", "ids are never given twice"


@pytest.mark.slow
def test_the_offline_tasks_are_distinct() -> None:
    contract = DOMAIN.contract()
    tasks = make_tasks(DOMAIN.synthesizer(), requests(contract, 1000, 5))
    shared = [path.read_text() for path in DOMAIN.skills().values()]
    prompts = [prompt_of(t.id, prompt_text(contract, t, _visible(contract, t), shared)) for t in tasks]
    assert len({one.prompt for one in prompts}) >= 0.95 * len(prompts)
    assert sum(bool(copy) for copy in Pool(0.8).fresh(prompts)) <= 5
