"""The judge against a real model server: protocol, streaming, timeouts and concurrency, not quality.

Set BAT_VLLM to a `vllm` program to use it; otherwise `transformers serve` is used where it can run.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from bat_core.config.schema import JudgeConfig, VerifyConfig
from bat_core.model.verdict import ItemVerdict
from bat_core.verify.judge.verifier import JudgeVerifier

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def ask(
    served: tuple[str, str], sealed: list[Any], kit: Any, **settings: Any
) -> tuple[list[ItemVerdict], JudgeVerifier]:
    form = "schema" if os.environ.get("BAT_VLLM") else "prompt"
    values = {"votes": 1, "retries": 0, "timeout_s": 120.0, "answer_tokens": 60, "structured": form, **settings}
    verifier = JudgeVerifier(VerifyConfig(judge=JudgeConfig(endpoint=served[0], **{"models": (served[1],), **values})))

    async def go() -> list[ItemVerdict]:
        try:
            return list(await asyncio.gather(*(verifier.verify(kit.ITEM, one) for one in sealed)))
        finally:
            await verifier.aclose()

    return asyncio.run(go()), verifier


@pytest.mark.parametrize("stream", [True, False])
def test_a_model_that_knows_nothing_gets_no_yes_through(served: tuple[str, str], kit: Any, stream: bool) -> None:
    (found,), verifier = ask(served, [kit.evidence()], kit, stream=stream)
    assert found.passed is not True and found.reason
    assert 1 <= verifier.spent.calls <= 2 and verifier.spent.unreachable == 0
    assert verifier.spent.tokens_in > 100 and verifier.spent.tokens_out > 0
    if found.passed is None:
        assert "answered invalidly twice" in found.reason


def test_many_at_once_are_all_answered(served: tuple[str, str], kit: Any) -> None:
    sealed = [kit.evidence(f"{kit.NOTES} Run number {n}.") for n in range(4)]
    found, verifier = ask(served, sealed, kit, concurrency=4, answer_tokens=24)
    assert len(found) == 4 and all(one.passed is not True and one.reason for one in found)
    assert verifier.spent.unreachable == 0


def test_a_server_that_takes_too_long_is_null(served: tuple[str, str], kit: Any) -> None:
    (found,), _ = ask(served, [kit.evidence()], kit, timeout_s=0.05)
    assert found.passed is None and "no answer within 0.05 s" in found.reason


@pytest.mark.skipif(not os.environ.get("BAT_VLLM"), reason="only vLLM decodes by a schema")
def test_structured_output_is_an_answer(served: tuple[str, str], kit: Any) -> None:
    (found,), verifier = ask(served, [kit.evidence()], kit, answer_tokens=4000)
    assert found.passed is False and verifier.spent.invalid == 0, found.reason
