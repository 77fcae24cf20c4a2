from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from bat_core.config.schema import Config, PolicyConfig
    from bat_core.model.task import Task
    from bat_core.model.training import PolicyRef

# A busy machine is no failure, and a failure can be had again; `HYPOTHESIS_PROFILE=wide` looks further.
settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("wide", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

CELLS = (
    ("segmentation", "success", None),
    ("segmentation", "recovery", "S2"),
    ("classification", "recovery", "S3"),
    ("segmentation", "recovery", "S4"),
    ("classification", "failure", "S1"),
    ("classification", "failure", "S5"),
)
"""Track, stratum and fault stage of the few tasks on which the real domain is tried."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly what did not run for want of an engine."""
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if "no Docker engine" in str(one.longrepr)]
    if skipped:
        said = "start one with .ci/docker-engine, or set BAT_REQUIRE=docker to make this a failure"
        terminalreporter.write_line(f"{len(skipped)} DOCKER TESTS DID NOT RUN: there is no engine; {said}", red=True)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what tests make out of the user's cache."""
    os.environ.setdefault("BAT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def distribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], Path]:
    """Make a distribution bat-MODULE with one module and its entry points; child processes can import it too."""
    site = tmp_path / "site"

    def make(module: str, code: str, entries: str) -> Path:
        info = site / f"bat_{module}-0.1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{module}.py").write_text(textwrap.dedent(code))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bat-{module}\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entries))
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
        return site

    return make


@pytest.fixture(scope="session")
def small_config() -> Config:
    """The smallest configuration with which everything runs."""
    from bat_core.cli.options import configuration

    words = ["bank.workers=0", "sandbox.provider=bubblewrap", "evaluate.tasks=2", "evaluate.blind_tasks=2"]
    words += ["rollout.live=4", "rollout.turns=3", "rollout.stage_turns=2", "rollout.turn_tokens=24"]
    words += ["bank.cheats=false"]
    return configuration("medimaging", "cpu", None, words).config


@pytest.fixture(scope="session")
def small_policy() -> PolicyConfig:
    """The recipe of a base that knows nothing and is there in seconds."""
    from bat_core.config.schema import PolicyConfig

    return PolicyConfig(logs=4, steps=3, hidden=16, layers=2, heads=2, batch=2)


@pytest.fixture(scope="session")
def tiny_base(
    small_config: Config, small_policy: PolicyConfig, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolicyRef]:
    """A base policy of the real domain, built the way every base is built."""
    from bat_core.executors import LocalExecutor
    from bat_core.registry import load_domain
    from bat_core.rollout.lab import LabSpec, close_labs
    from bat_core.training.base import build_base

    folder = tmp_path_factory.mktemp("base")
    lab = LabSpec(
        domain="medimaging",
        store=str(folder / "store"),
        provider="bubblewrap",
        key="ab" * 32,
        rollout=small_config.rollout,
    )
    yield build_base(load_domain("medimaging"), small_policy, lab, LocalExecutor(0), folder / "base")
    close_labs()


@pytest.fixture(scope="session")
def small_tasks() -> list[Task]:
    """A few tasks of the real domain: all strata, both tracks."""
    from bat_core.hooks.synthesizer import SynthesisRequest
    from bat_core.model.task import Stratum
    from bat_core.registry import load_domain

    synthesizer = load_domain("medimaging").synthesizer()
    wanted = [SynthesisRequest(track=t, stratum=Stratum(s), stage=at, seed=n) for n, (t, s, at) in enumerate(CELLS)]
    return [task for one in wanted for task in synthesizer.synthesize(one)]


@pytest.fixture(scope="session")
def small_run(
    small_config: Config, small_tasks: list[Task], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A run directory with a bank of those tasks. Read it; a test that spoils it takes a copy."""
    from bat_core.bank.builder import Builder
    from bat_core.evolve.directory import RunDirectory
    from bat_core.evolve.preflight import open_preflight
    from bat_core.evolve.settings import lab_spec
    from bat_core.executors import LocalExecutor
    from bat_core.registry import load_domain
    from bat_core.rollout.lab import close_labs

    path = tmp_path_factory.mktemp("run")
    with RunDirectory(path) as run, open_preflight(small_config, run) as preflight:
        builder = Builder(run.bank, lab_spec(small_config, run), LocalExecutor(0), preflight)
        builder.build(load_domain("medimaging").contract(), small_tasks)
    yield path
    close_labs()


# -- a model server -------------------------------------------------------------------------------------------

SHIPPED = Path(__file__).parents[1] / "domains" / "medimaging" / "src" / "bat_medimaging" / "base"
SERVE = "from transformers.cli.transformers import main; main()"
VLLM = os.environ.get("BAT_VLLM")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A small random model behind a real server, `BAT_VLLM` or `transformers serve`: endpoint and model name."""
    from transformers import AutoTokenizer

    from bat_core.config.schema import PolicyConfig
    from bat_core.training.tiny import tiny_model

    folder = tmp_path_factory.mktemp("model")
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED)
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
        server = subprocess.Popen(_server(folder, port), stdout=log, stderr=subprocess.STDOUT, env=environment)
        try:
            until = time.monotonic() + 300
            while not _answers(port):
                assert server.poll() is None and time.monotonic() < until, (folder / "server.log").read_text()[-3000:]
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1", str(folder)
        finally:
            server.terminate()
            server.wait(30)


def _server(model: Path, port: int) -> list[str]:
    if VLLM:
        more = ["--dtype", "bfloat16", "--max-model-len", "8192", "--enforce-eager", "--host", "127.0.0.1"]
        return [VLLM, "serve", str(model), *more, "--port", str(port)]
    return [sys.executable, "-c", SERVE, "serve", str(model), "--device", "cpu", "--port", str(port)]


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
