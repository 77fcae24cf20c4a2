"""The judge against a real model server: protocol, streaming, timeouts and concurrency, not quality.

Set BAT_VLLM to a `vllm` program to use it; otherwise `transformers serve` is used where it can run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bat_core.config.schema import JudgeConfig, PolicyConfig, VerifyConfig
from bat_core.model.verdict import ItemVerdict
from bat_core.verify.judge.verifier import JudgeVerifier

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
SERVE = "from transformers.cli.transformers import main; main()"
BASE = Path(__file__).parents[3] / "domains" / "medimaging" / "src" / "bat_medimaging" / "base"
CONTEXT = 8192


def command(model: Path, port: int) -> list[str]:
    vllm = os.environ.get("BAT_VLLM")
    if vllm:
        more = ["--dtype", "bfloat16", "--max-model-len", str(CONTEXT), "--enforce-eager", "--host", "127.0.0.1"]
        return [vllm, "serve", str(model), *more, "--port", str(port)]
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "openai")):
        pytest.skip("no BAT_VLLM, and `transformers serve` needs fastapi, uvicorn and openai")
    return [sys.executable, "-c", SERVE, "serve", str(model), "--device", "cpu", "--port", str(port)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A randomly initialised model behind a real server: endpoint and model name."""
    from transformers import AutoTokenizer

    from bat_core.training.tiny import tiny_model

    folder = tmp_path_factory.mktemp("model")
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    shape = PolicyConfig(hidden=64, layers=2, heads=2, vocabulary=1024, context=CONTEXT)
    tiny_model(tokenizer, shape, seed=1).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (folder / "server.log").open("w")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}
    if os.environ.get("BAT_VLLM"):
        environment.pop("PYTHONPATH", None)
    server = subprocess.Popen(command(folder, port), stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        until = time.monotonic() + 300
        while not answers(port):
            assert server.poll() is None and time.monotonic() < until, (folder / "server.log").read_text()[-3000:]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as reply:
            return reply.status == 200
    except OSError:
        return False


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
