"""A local runner: the expert's code in a folder, with receipts as the harness would write them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bat_medimaging import MedImagingDomain
from bat_medimaging.toolbelt import phx

from bat_core.hooks.actor import Act
from bat_core.hooks.synthesizer import SynthesisRequest
from bat_core.model.evidence import Evidence
from bat_core.model.message import Message
from bat_core.model.receipt import Receipt
from bat_core.model.task import Stratum, Task

DOMAIN = MedImagingDomain()
CONTRACT = DOMAIN.contract()
CHECKS = DOMAIN.verifiers()


class Runner:
    """A workspace in a plain folder."""

    def __init__(self, root: Path, task: Task, files: Mapping[str, bytes] | None = None) -> None:
        self.root, self.task = root, task
        self.messages: list[Message] = []
        self.receipts: list[Receipt] = []
        for path, data in (files if files is not None else CONTRACT.workspace(task)).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        self.seen = self.scan()

    def files(self) -> dict[str, bytes]:
        """Return what the last call left behind."""
        return dict(self.seen)

    def scan(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in sorted(self.root.rglob("*")) if p.is_file()}

    def tree(self) -> str:
        return hashlib.sha256(b"".join(path.encode() + data for path, data in sorted(self.seen.items()))).hexdigest()

    def do(self, act: Act) -> str:
        """Run an act's code, keep a receipt, return what it printed."""
        self.messages.append(act.message)
        if not act.message.tool_calls:
            return ""
        code = act.message.tool_calls[0].arguments["code"]
        before, out, rc = self.tree(), io.StringIO(), 0
        with contextlib.chdir(self.root), contextlib.redirect_stdout(out):
            try:
                exec(compile(code, "call", "exec"), {"phx": phx})
            except Exception as error:  # noqa: BLE001 boundary
                rc = 1
                print(repr(error), file=sys.stderr)
        text = out.getvalue()
        self.seen = self.scan()
        self.receipts.append(
            Receipt(
                seq=len(self.receipts), provider="folder", language="python", code=code, status="exited", rc=rc,
                stdout=text, stderr="", out_sha="", err_sha="", ws_before=before, ws_after=self.tree(),
            )
        )  # fmt: skip
        self.messages.append(Message(role="tool", name="execute_code", content=text))
        return text

    def evidence(self, start: Mapping[str, bytes], focus: str = "E2E", since: int = 0, final: str = "") -> Evidence:
        return Evidence(
            task=self.task, focus=focus, start=start, files=self.files(), history=tuple(self.receipts[:since]),
            receipts=tuple(self.receipts[since:]), messages=tuple(self.messages), final=final,
        )  # fmt: skip


class Run:
    """A finished run of an actor: evidence from the start, and the workspace at each stage boundary."""

    def __init__(self, root: Path, task: Task, acts: Sequence[Act], files: Mapping[str, bytes] | None = None) -> None:
        self.runner = Runner(root, task, files)
        self.start = self.runner.files()
        self.bounds: dict[str, tuple[dict[str, bytes], int]] = {}
        self.after: list[tuple[Act, str, dict[str, bytes], int]] = []
        final = ""
        for act in acts:
            if act.stage not in self.bounds:
                self.bounds[act.stage] = (self.runner.files(), len(self.runner.receipts))
            out = self.runner.do(act)
            final = "" if act.message.tool_calls else act.message.content
            self.after.append((act, out, self.runner.files(), len(self.runner.receipts)))
        self.task = task
        self.final = final
        self.evidence = self.runner.evidence(self.start, final=final)

    def part(self, stage: str, first: int | None = None) -> Evidence:
        """Evidence of a rollout about one stage, from its boundary or from right after act `first`."""
        last = max(at for at, (act, *_) in enumerate(self.after) if act.stage == stage and act.message.tool_calls)
        start, since = self.bounds[stage] if first is None else self.after[first][2:]
        receipts = self.runner.receipts
        return Evidence(
            task=self.task, focus=stage, start=start, files=self.after[last][2], history=tuple(receipts[:since]),
            receipts=tuple(receipts[since : self.after[last][3]]), final=self.final if stage == "S5" else "stage done",
        )  # fmt: skip

    def idle(self, at: int) -> Evidence:
        """Evidence of a rollout that starts right after act `at` and only says that all is well."""
        act, _, files, since = self.after[at]
        history = tuple(self.runner.receipts[:since])
        return Evidence(task=self.task, focus=act.stage, start=files, files=files, history=history, final=self.final)

    @property
    def last_of(self) -> dict[str, int]:
        """Place of the last act with a call, by stage."""
        return {act.stage: at for at, (act, *_) in enumerate(self.after) if act.message.tool_calls}

    @property
    def lines(self) -> list[str]:
        return [out for _, out, _, _ in self.after]


def acts_of(actor: Any) -> list[Act]:
    history: list[Message] = []
    acts: list[Act] = []
    while (act := actor.act(history)) is not None:
        acts.append(act)
        history.append(act.message)
    return acts


def judge(evidence: Evidence, stages: Sequence[str] = ("S1", "S2", "S3", "S4", "S5")) -> dict[str, Any]:
    """Return verdicts by item id."""

    async def verdicts() -> dict[str, Any]:
        out = {}
        for stage in stages:
            for item in CONTRACT.rubric(evidence.task, stage, evidence.task.stratum).items:
                out[item.id] = await CHECKS[item.verifier.removeprefix("check:")].verify(item, evidence)
        return out

    return asyncio.run(verdicts())


def stage_score(evidence: Evidence, stage: str) -> float:
    rubric = CONTRACT.rubric(evidence.task, stage, evidence.task.stratum)
    verdicts = judge(evidence, [stage])
    counted = [v.evidence for v in verdicts.values() if v.claimed or v.passed]
    eta = sum(counted) / len(counted) if counted else 1.0
    total = sum(item.weight for item in rubric.items)
    return eta * sum(item.weight * bool(verdicts[item.id].passed) for item in rubric.items) / total


def tasks(track: str, stratum: str = "success", stage: str | None = None, count: int = 1, seed: int = 0) -> list[Task]:
    request = SynthesisRequest(track=track, stratum=Stratum(stratum), stage=stage, count=count, seed=seed)
    return list(DOMAIN.synthesizer().synthesize(request))


def every_kind(count: int = 1, seed: int = 0) -> list[Task]:
    """Tasks of each track, stratum and fault stage."""
    out: list[Task] = []
    for track in CONTRACT.tracks():
        out += tasks(track, "success", None, count, seed)
        for stratum in ("recovery", "failure"):
            for stage in ("S1", "S2", "S3", "S4", "S5"):
                out += tasks(track, stratum, stage, count, seed)
    return out


@pytest.fixture(scope="session")
def helpers() -> Any:
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def solve(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Run the expert, or other acts, on a task in a folder of its own."""

    def run(task: Task, acts: Sequence[Act] | None = None, files: Mapping[str, bytes] | None = None) -> Run:
        return Run(tmp_path_factory.mktemp("w"), task, acts_of(DOMAIN.expert(task)) if acts is None else acts, files)

    return run


@pytest.fixture(scope="session")
def runs(solve: Callable[..., Run]) -> list[Run]:
    """The expert's runs on a task of each kind."""
    return [solve(task) for task in every_kind()]


@pytest.fixture(scope="session")
def slipped(solve: Callable[..., Run]) -> list[Run]:
    """The same with mistakes."""
    kinds = every_kind(seed=1)
    return [solve(task, acts_of(DOMAIN.expert(task, Random(place)))) for place, task in enumerate(kinds)]


@pytest.fixture(autouse=True)
def _no_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("PHX_ROOT", raising=False)
    assert "PHX_ROOT" not in os.environ
    yield
