"""The teacher's protocol against a real model server: no quality, only that nothing is lost, false or uncounted.

Set BAT_VLLM to a `vllm` program to use it; otherwise `transformers serve` runs the shipped tiny policy.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.teacher.exchange import Exchange
from bat_core.bank.teacher.forms import Move, Patterns
from bat_core.bank.teacher.synthesizer import TeacherSynthesizer
from bat_core.config.schema import PolicyConfig, TeacherConfig
from bat_core.errors import SynthesisError
from bat_core.registry import load_domain

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
BASE = Path(__file__).parents[2] / "domains" / "medimaging" / "src" / "bat_medimaging" / "base"
SERVE = "from transformers.cli.transformers import main; main()"
VLLM = os.environ.get("BAT_VLLM")


def command(model: Path, port: int) -> list[str]:
    if VLLM:
        more = ["--dtype", "bfloat16", "--max-model-len", "8192", "--enforce-eager", "--host", "127.0.0.1"]
        return [VLLM, "serve", str(model), *more, "--port", str(port)]
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "openai")):
        pytest.skip("no BAT_VLLM, and `transformers serve` needs fastapi, uvicorn and openai")
    return [sys.executable, "-c", SERVE, "serve", str(model), "--device", "cpu", "--port", str(port)]


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A small model behind a real server: endpoint and model name."""
    from transformers import AutoTokenizer

    from bat_core.training.tiny import tiny_model

    folder = tmp_path_factory.mktemp("model")
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    shape = PolicyConfig(hidden=64, layers=2, heads=2, vocabulary=1024, context=8192)
    tiny_model(tokenizer, shape, seed=1).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}
    if VLLM:
        environment.pop("PYTHONPATH", None)
    with (folder / "server.log").open("w") as log:
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


def settings(served: tuple[str, str], cache: Path, **more: object) -> TeacherConfig:
    form = "schema" if VLLM else "prompt"
    values = {"tries": 2, "answer_tokens": 40, "timeout_s": 120.0, "structured": form, "cache": str(cache), **more}
    return TeacherConfig.model_validate({"endpoint": served[0], "model": served[1], **values})


@pytest.mark.skipif(bool(VLLM), reason="what decodes by a schema keeps to the form")
def test_a_model_that_knows_nothing_makes_no_task_and_is_counted(served: tuple[str, str], tmp_path: Path) -> None:
    domain = load_domain("medimaging")
    synthesizer = TeacherSynthesizer(domain, settings(served, tmp_path))
    with pytest.raises(SynthesisError, match="answered 2 times without the form asked for"):
        make_tasks(synthesizer, requests(domain.contract(), 2, 0))
    spent = synthesizer._exchange.ledger.spent()
    assert spent.calls == 2 and spent.failed == 0
    assert spent.tokens_in > 1000 and 2 <= spent.tokens_out <= 80, "as the server counts them"
    synthesizer.close()
    assert not list(tmp_path.glob("answers/*"))


def test_a_server_that_takes_too_long_is_told_and_costs_nothing(served: tuple[str, str], tmp_path: Path) -> None:
    exchange = Exchange(settings(served, tmp_path, timeout_s=0.02, retries=1))
    with pytest.raises(SynthesisError, match=r"no answer within 0\.02 s"):
        exchange.ask([{"role": "user", "content": "x"}], Patterns)
    assert (exchange.ledger.spent().calls, exchange.ledger.spent().failed) == (1, 1)
    exchange.close()


@pytest.mark.skipif(not VLLM, reason="only vLLM decodes by a schema")
def test_structured_output_has_the_form(served: tuple[str, str], tmp_path: Path) -> None:
    exchange = Exchange(settings(served, tmp_path, answer_tokens=4000))
    move = exchange.ask([{"role": "user", "content": "Begin."}], Move)
    assert move.kind in ("call", "final") and exchange.ask([{"role": "user", "content": "Begin."}], Move) == move
    assert exchange.cached == 1
    exchange.close()
