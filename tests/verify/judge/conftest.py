"""A real HTTP server that speaks the OpenAI protocol, with judges of every character behind it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bat_core.config.schema import JudgeConfig, VerifyConfig
from bat_core.model.evidence import Evidence
from bat_core.model.receipt import Receipt
from bat_core.model.rubric import RubricItem
from bat_core.model.task import Task
from bat_core.verify.judge.verifier import JudgeVerifier

Body = dict[str, Any]
NOTES = (
    "Worst case: k84 with dice 0.634. Its blob touches dim border cells, so the threshold cuts the rim.\n"
    "The other grids are bright in the middle and keep their shape after smoothing."
)
ITEM = RubricItem(id="V5", criterion="The notes name the worst case and a cause.", verifier="judge")


class Endpoint:
    """The server. `answer` makes the content of a reply; `raw` takes the connection over instead."""

    def __init__(self) -> None:
        self.answer: Callable[[Body], str] = lambda body: "{}"
        self.raw: Callable[[BaseHTTPRequestHandler, Body], None] | None = None
        self.bodies: list[Body] = []
        self.delay = 0.0
        self.now = self.peak = 0
        self._lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.serve(self)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            self.bodies.append(body)
            self.now += 1
            self.peak = max(self.peak, self.now)
        try:
            time.sleep(self.delay)
            if self.raw is not None:
                self.raw(handler, body)
            else:
                speak(handler, body, self.answer(body))
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with self._lock:
                self.now -= 1

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def speak(handler: BaseHTTPRequestHandler, body: Body, content: str) -> None:
    """Answer as a good server does, streamed in small pieces if asked to."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    base = {"id": "c", "created": 0, "model": body["model"]}
    handler.send_response(200)
    if not body.get("stream"):
        message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        data = json.dumps({**base, "object": "chat.completion", "choices": [message], "usage": usage}).encode()
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
        return
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    for at in range(0, len(content), 4096):
        choice = {"index": 0, "delta": {"content": content[at : at + 4096]}, "finish_reason": None}
        event(handler, {**base, "object": "chat.completion.chunk", "choices": [choice]})
    event(handler, {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    handler.wfile.write(b"data: [DONE]\n\n")


def event(handler: BaseHTTPRequestHandler, value: Any) -> None:
    handler.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")


def blocks(body: Body) -> dict[str, str]:
    """Return the data blocks of a prompt by id."""
    user = body["messages"][1]["content"]
    found = re.findall(r"^(\w{20}) begin (\w+)\n(.*?)\n\1 end \2$", user, re.M | re.S)
    return {name: text for _, name, text in found}


def quoting(source: str, words: str, verdict: str = "yes", reason: str = "it is there") -> Callable[[Body], str]:
    """Return a judge that points at words."""

    def answer(body: Body) -> str:
        at = max(0, blocks(body).get(source, "").find(words))
        quote = {"source": source, "start": at, "end": at + len(words), "text": words}
        return json.dumps({"verdict": verdict, "quotes": [quote], "reason": reason})

    return answer


def evidence(
    notes: str = NOTES, final: str = "Done.", stdout: str = "", code: str = "look()", **files: bytes
) -> Evidence:
    receipts = ()
    if stdout:
        receipts = (
            Receipt(seq=0, provider="p", language="python", code=code, status="exited", rc=0, stdout=stdout, stderr="",
                    out_sha="", err_sha="", ws_before="", ws_after=""),
        )  # fmt: skip
    task = Task(id="t", domain="d", track="t", seed=0)
    given = {"given.txt": b"what was given and is no work of the policy"}
    made = {"notes.md": notes.encode(), **{name.replace("__", "/"): data for name, data in files.items()}}
    return Evidence(task=task, focus="A", start=given, files={**given, **made}, receipts=receipts, final=final)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    one = Endpoint()
    yield one
    one.close()


@pytest.fixture
def judge(endpoint: Endpoint) -> Callable[..., JudgeVerifier]:
    def make(**settings: Any) -> JudgeVerifier:
        values = {"endpoint": endpoint.url, "models": ("m",), "votes": 1, "timeout_s": 5.0, "retries": 0, **settings}
        return JudgeVerifier(VerifyConfig(judge=JudgeConfig(**values)))

    return make


@pytest.fixture(scope="session")
def kit() -> Any:
    import sys

    return sys.modules[__name__]
