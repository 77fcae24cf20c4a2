"""The teacher against a real HTTP server that speaks the OpenAI protocol, well or badly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bat_core.bank.plan import make_tasks, requests
from bat_core.bank.produce import Order, produce
from bat_core.bank.teacher.exchange import Exchange, told
from bat_core.bank.teacher.forms import Pattern, Patterns, Proposal
from bat_core.bank.teacher.ledger import Ledger, Spent, estimate, line
from bat_core.bank.teacher.synthesizer import TeacherSynthesizer
from bat_core.config.schema import TeacherConfig
from bat_core.errors import ConfigError, SynthesisError
from bat_core.hooks.actor import Act
from bat_core.model.message import Message
from bat_core.model.task import Stratum, Task
from bat_core.registry import load_domain
from bat_core.rollout import lab as labs
from bat_core.rollout.lab import Lab

DOMAIN = load_domain("medimaging")
Body = dict[str, Any]
PATTERNS = {"patterns": [{"name": "conflict", "stage": "S1", "what": "The card and the README differ."}]}
ASKED = [{"role": "system", "content": "s" * 40}, {"role": "user", "content": "u" * 360}]
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


class Endpoint:
    """A server. `mood` are the moods of the next calls, in order; then it is good and says what `answer` says."""

    def __init__(self) -> None:
        self.answer: Callable[[Body], str] = lambda body: json.dumps(PATTERNS)
        self.mood: list[str] = []
        self.bodies: list[Body] = []
        self.usage: dict[str, int] | None = USAGE
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                with suppress(BrokenPipeError, ConnectionResetError):
                    endpoint.serve(self)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.bodies.append(body)
        mood = self.mood.pop(0) if self.mood else "good"
        if mood.isdigit():
            handler.send_response(int(mood))
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if mood == "slow":
            time.sleep(1.5)
        text = self.answer(body)
        if mood == "broken":
            text = text[: len(text) // 2] + "}}"
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        base = {"id": "c", "created": 0, "model": body["model"], "object": "chat.completion.chunk"}
        pieces = [text[at : at + 50] for at in range(0, len(text), 50)]
        for piece in pieces[: max(1, len(pieces) // 2)] if mood == "stop" else pieces:
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
            self._event(handler, {**base, "choices": [choice]})
        if mood == "stop":
            return
        if self.usage:
            self._event(handler, {**base, "choices": [], "usage": self.usage})
        handler.wfile.write(b"data: [DONE]\n\n")

    @staticmethod
    def _event(handler: BaseHTTPRequestHandler, value: Any) -> None:
        handler.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    one = Endpoint()
    yield one
    one.close()


@pytest.fixture
def settings(endpoint: Endpoint, tmp_path: Path) -> TeacherConfig:
    cache = str(tmp_path / "teacher")
    return TeacherConfig(endpoint=endpoint.url, model="m", cache=cache, timeout_s=1.0, price_in=2.0, price_out=10.0)


@pytest.fixture
def exchange(settings: TeacherConfig) -> Iterator[Exchange]:
    one = Exchange(settings)
    yield one
    one.close()


def files(settings: TeacherConfig) -> list[str]:
    return sorted(path.suffix for path in Path(settings.cache).rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("moods", "spent"),
    [
        (["429", "500", "503"], Spent(1, 100, 10, 0)),
        (["slow"], Spent(1, 100, 10, 0)),
        (["broken"], Spent(2, 200, 20, 0)),
    ],
    ids=["refused", "slow", "broken"],
)
def test_what_goes_wrong_is_asked_again_and_what_it_cost_is_counted(
    endpoint: Endpoint, exchange: Exchange, settings: TeacherConfig, moods: list[str], spent: Spent
) -> None:
    endpoint.mood = list(moods)
    found = exchange.ask(ASKED, Patterns)
    assert found == Patterns.model_validate(PATTERNS) and len(endpoint.bodies) == len(moods) + 1
    assert exchange.ledger.spent() == spent
    assert spent.price(settings) == pytest.approx((spent.tokens_in * 2 + spent.tokens_out * 10) / 1e6)
    assert files(settings) == [".json", ".jsonl"], "nothing half-written"


def test_a_stream_that_stops_in_the_middle_is_no_answer(
    endpoint: Endpoint, exchange: Exchange, settings: TeacherConfig
) -> None:
    endpoint.mood = ["stop"]
    assert exchange.ask(ASKED, Patterns) == Patterns.model_validate(PATTERNS)
    spent = exchange.ledger.spent()
    assert spent.calls == 2 and spent.tokens_in == 100 + 400 // 4 and spent.tokens_out > 10, "half a stream is paid"
    assert files(settings) == [".json", ".jsonl"]


def test_an_answer_is_asked_for_once_even_by_another_process(
    endpoint: Endpoint, exchange: Exchange, settings: TeacherConfig
) -> None:
    first = exchange.ask(ASKED, Patterns)
    again = Exchange(settings)
    assert again.ask(ASKED, Patterns) == first and again.cached == 1 and len(endpoint.bodies) == 1
    exchange.ask(ASKED, Patterns, seed=1)
    assert len(endpoint.bodies) == 2, "another seed is another question"
    (spoilt, *_) = (Path(settings.cache) / "answers").iterdir()
    spoilt.write_text(spoilt.read_text()[:30])
    assert {again.ask(ASKED, Patterns, seed=n) for n in (0, 1)} == {first} and len(endpoint.bodies) == 3
    again.close()
    form = endpoint.bodies[0]["response_format"]["json_schema"]
    assert form["strict"] and form["schema"] == Patterns.model_json_schema()


@pytest.mark.parametrize(("moods", "calls"), [(["500"] * 9, 6), (["401"], 1)])
def test_an_endpoint_that_stays_broken_is_one_line(
    endpoint: Endpoint, settings: TeacherConfig, moods: list[str], calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bat_core.endpoint.client.PAUSE_S", 0.001)
    endpoint.mood = moods
    exchange = Exchange(settings)
    with pytest.raises(SynthesisError) as caught:
        exchange.ask(ASKED, Patterns)
    exchange.close()
    assert "HTTP " in str(caught.value) and "\n" not in str(caught.value) and caught.value.remedy
    assert len(endpoint.bodies) == calls and exchange.ledger.spent() == Spent(1, 0, 0, 1)


def test_a_teacher_that_never_keeps_to_the_form_is_one_line(endpoint: Endpoint, exchange: Exchange) -> None:
    endpoint.answer = lambda body: "As a language model I'd rather write prose.\n" * 3
    with pytest.raises(SynthesisError, match="3 times without the form asked for") as caught:
        exchange.ask(ASKED, Patterns)
    assert "\n" not in str(caught.value) and len(endpoint.bodies) == 3
    endpoint.answer = lambda body: f"```json\n{json.dumps(PATTERNS)}\n```"
    assert exchange.ask(ASKED, Patterns), "a fence around JSON is forgiven"
    endpoint.answer = lambda body: json.dumps({**PATTERNS, "note": "x"})
    with pytest.raises(SynthesisError):
        exchange.ask(ASKED, Patterns, seed=5)


def test_the_budget_ends_the_asking_before_it_is_exceeded(endpoint: Endpoint, settings: TeacherConfig) -> None:
    for update, calls in (({"tokens": 1100}, 2), ({"money": 0.0084}, 1), ({"tokens": 899}, 0), ({}, 3)):
        endpoint.bodies.clear()
        cache = f"{settings.cache}-{update}"
        exchange = Exchange(settings.model_copy(update={**update, "cache": cache}))
        try:
            for seed in range(3):
                exchange.ask(ASKED, Patterns, seed=seed)
            assert not update
        except SynthesisError as error:
            assert "budget is spent: " in str(error) and "by the configured prices" in str(error)
        assert len(endpoint.bodies) == calls, update
        assert exchange.ledger.spent().tokens_in + exchange.ledger.spent().tokens_out <= update.get("tokens", 1 << 30)
        exchange.close()


def test_what_it_costs_is_told_before_and_after(settings: TeacherConfig) -> None:
    assert estimate(10, 4000, settings).startswith("teacher: at most 10 calls (0 failed), 10000 + 8000 tokens, 0.1000")
    assert line(Spent(2, 5, 7, 1), TeacherConfig()) == "2 calls (1 failed), 5 + 7 tokens"


def test_a_server_that_tells_no_usage_is_estimated(endpoint: Endpoint, exchange: Exchange) -> None:
    endpoint.usage = None
    exchange.ask(ASKED, Patterns)
    assert exchange.ledger.spent() == Spent(1, 100, -(-len(json.dumps(PATTERNS)) // 4), 0)


def test_lines_of_many_processes_do_not_mix_and_a_spoilt_ledger_is_named(tmp_path: Path) -> None:
    threads = [threading.Thread(target=lambda: [Ledger(tmp_path).add(3, 4, failed=False) for _ in range(50)])
               for _ in range(4)]  # fmt: skip
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert Ledger(tmp_path).spent() == Spent(200, 600, 800, 0)
    (tmp_path / "ledger.jsonl").write_text("{\n")
    with pytest.raises(SynthesisError, match="is damaged"):
        Ledger(tmp_path).spent()


def test_endpoint_and_model_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"bank\.teacher\.endpoint is not set; set it, or BAT_TEACHER_URL"):
        told(TeacherConfig())
    monkeypatch.setenv("BAT_TEACHER_URL", "http://a/v1")
    monkeypatch.setenv("BAT_TEACHER_MODEL", "big")
    assert (told(TeacherConfig()).endpoint, told(TeacherConfig(model="own")).model) == ("http://a/v1", "own")


class Author:
    """Answers as an inventive model would, or one that always says the same."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.stubborn, self.count = stubborn, 0
        self.refusals: list[str] = []

    def __call__(self, body: Body) -> str:
        system, user = (message["content"] for message in body["messages"][:2])
        if "kinds of tasks" in system:
            assert "Medical-imaging workflow" in user and "S3 validate" in user and "P1 in S1" in user
            return json.dumps(PATTERNS)
        if "was refused" in user:
            self.refusals.append(user)
        self.count += not self.stubborn
        words = " ".join(f"w{self.count * 31 + n}" for n in range(30))
        return json.dumps({"pattern": "conflict", "title": f"Job {self.count}", "brief": f"Somebody needs {words}"})


def test_tasks_are_proposed_in_the_light_of_workflow_patterns_and_pool(
    endpoint: Endpoint, settings: TeacherConfig
) -> None:
    author = Author()
    endpoint.answer = author
    wanted = requests(DOMAIN.contract(), 6, seed=1)
    made = []
    for _ in range(2):
        synthesizer = TeacherSynthesizer.opened(DOMAIN, {"teacher": settings.model_dump(mode="json")})
        made.append(make_tasks(synthesizer, wanted))
        synthesizer.close()
        assert len(endpoint.bodies) == 7, "one for the patterns, one a task; a rerun is free"
    assert made[0] == made[1] and len({task.id for task in made[0]}) == 6
    for request, task in zip(wanted, made[0], strict=True):
        assert (task.track, task.stratum) == (request.track, request.stratum)
        assert task.public["pattern"] == "conflict" and task.public["brief"].startswith("Somebody needs w")
    last = endpoint.bodies[-1]["messages"][1]["content"]
    assert "conflict (S1)" in last and sum(f"- Job {n}:" in last for n in range(1, 6)) >= 5


def test_what_is_not_new_is_asked_for_again_with_the_reason(endpoint: Endpoint, settings: TeacherConfig) -> None:
    author = Author(stubborn=True)
    endpoint.answer = author
    synthesizer = TeacherSynthesizer(DOMAIN, settings)
    tasks = make_tasks(synthesizer, requests(DOMAIN.contract(), 2, seed=1))
    synthesizer.close()
    assert len(tasks) == 2 and synthesizer.refused == settings.tries
    assert len(author.refusals) == settings.tries - 1
    assert all("the same words as proposal 0" in one for one in author.refusals)


class Solver:
    """Plays a script turn by turn; loses its tongue at one of them."""

    def __init__(self, acts: list[Act], dumb_at: int = -1) -> None:
        self.acts, self.dumb_at = acts, dumb_at

    def __call__(self, body: Body) -> str:
        place = sum(message["role"] == "assistant" for message in body["messages"])
        if place == self.dumb_at:
            return "?"
        act = self.acts[place]
        if act.message.tool_calls:
            code = act.message.tool_calls[0].arguments["code"]
            return json.dumps({"stage": act.stage, "kind": "call", "text": code})
        return json.dumps({"stage": act.stage, "kind": "final", "text": act.message.content})


def script(task: Task) -> list[Act]:
    expert, acts = DOMAIN.expert(task), []
    history: list[Message] = []
    while (act := expert.act(history)) is not None:
        acts.append(act)
        history.append(act.message)
    return acts


def test_a_teacher_solves_tasks_over_many_turns_in_real_sandboxes(
    endpoint: Endpoint, settings: TeacherConfig, lab: Lab, small_tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(labs._OPEN, lab.spec.model_dump_json(), lab)
    task = next(task for task in small_tasks if task.stratum is Stratum.RECOVERY)
    acts = script(task)
    endpoint.answer = Solver(acts)
    made = produce(Order(lab.spec, task, teacher=settings))
    assert made.refused == () and len(made.admitted) == 6 and len(endpoint.bodies) == len(acts)
    plain = produce(Order(lab.spec, task))
    assert [one.state.digest for one in made.admitted] == [one.state.digest for one in plain.admitted], (
        "symptoms are found in what its calls print, so that recovery begins at the same place"
    )
    seen = endpoint.bodies[-1]["messages"]
    assert [m["role"] for m in seen[:3]] == ["system", "user", "user"] and "phx.brief()" in seen[3]["content"]
    before = len(endpoint.bodies)
    assert produce(Order(lab.spec, task, teacher=settings)) is not None and len(endpoint.bodies) == before


def test_a_teacher_that_gives_up_or_breaks_down_admits_nothing_false(
    endpoint: Endpoint, settings: TeacherConfig, lab: Lab, small_tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(labs._OPEN, lab.spec.model_dump_json(), lab)
    task, acts = small_tasks[0], script(small_tasks[0])
    endpoint.answer = Solver([*acts[:6], Act("S5", Message(role="assistant", content="I stop here"))])
    early = produce(Order(lab.spec, task, teacher=settings))
    assert "E2E" not in {one.state.focus for one in early.admitted} and early.refused
    assert all("the expert's own run fails" in one.reason for one in early.refused)
    other = settings.model_copy(update={"cache": settings.cache + "2"})
    endpoint.answer = Solver(acts, dumb_at=4)
    with pytest.raises(SynthesisError, match="without the form asked for"):
        produce(Order(lab.spec, task, teacher=other))
    endpoint.answer, before = Solver(acts), len(endpoint.bodies)
    assert len(produce(Order(lab.spec, task, teacher=other)).admitted) == 6
    assert len(endpoint.bodies) - before == len(acts) - 4, "what was answered is not asked again"


def test_forms_refuse_what_they_do_not_know() -> None:
    with pytest.raises(ValueError):
        Proposal.model_validate({"pattern": "p", "title": "abc", "brief": "x" * 30, "answer": 3})
    assert Pattern(name="n", stage="S1", what="w").name == "n"
