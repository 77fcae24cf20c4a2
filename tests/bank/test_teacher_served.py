"""The teacher's protocol against a real model server: no quality, only that nothing is lost, false or uncounted.

Set BAT_VLLM to a `vllm` program to use it; otherwise `transformers serve` runs the shipped tiny policy.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.teacher.exchange import Exchange
from bat_core.bank.teacher.forms import Move, Patterns
from bat_core.bank.teacher.synthesizer import TeacherSynthesizer
from bat_core.config.schema import TeacherConfig
from bat_core.errors import SynthesisError
from bat_core.registry import load_domain

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
VLLM = os.environ.get("BAT_VLLM")


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
