"""The loop's side of the firewall: policies go in by name, a `Diagnosis` comes out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from pydantic import ValidationError

from bat_core import errors
from bat_core.errors import EvaluatorError
from bat_core.evaluate.declared import undeclared
from bat_core.hooks.evaluator import EvalProgress
from bat_core.leakage import frames
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.training import PolicyRef

ERRORS = frozenset(name for name, value in vars(errors).items() if isinstance(value, type))
"""The words for a failure that may cross: the names in our tree of errors."""
LARGEST = 64 * 1024
"""Bytes of an answer; a Diagnosis is far smaller."""
INHERITED = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "BAT_PLUGINS", "DOCKER_HOST",
)  # fmt: skip


class EvaluatorProcess:
    """A suite in a process of its own, started when first asked and kept between rounds. A context manager.

    Args:
        domain: Name of the domain.
        suite: `heldout` or `blind`.
        settings: For the domain's evaluator.
        folder: The evaluator's own folder: cells and log.
    """

    def __init__(self, domain: str, suite: str, settings: Mapping[str, Any], folder: Path) -> None:
        self._opening = {"domain": domain, "suite": suite, "settings": dict(settings)}
        self._domain = domain
        self._suite = suite
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def evaluate(self, policy: PolicyRef, against: PolicyRef | None, progress: EvalProgress) -> Diagnosis:
        """Return the diagnosis of `policy`.

        Raises:
            EvaluatorError: If the process fails, dies, or answers anything but a valid Diagnosis.
        """
        process = self._started()
        request = {"policy": policy.model_dump(), "against": against.model_dump() if against else None}
        self._send(process, request)
        while True:
            answer = self._receive(process)
            if "progress" in answer:
                progress(*self._counts(answer["progress"]))
                continue
            try:
                diagnosis = Diagnosis.model_validate(answer.get("diagnosis"))
            except ValidationError as error:
                raise self._failed("sent something that is not a Diagnosis") from error
            if diagnosis.policy != policy.digest or diagnosis.against != (against.digest if against else None):
                raise self._failed("sent the Diagnosis of other policies")
            if undeclared(diagnosis, self._domain):
                raise self._failed("sent a Diagnosis with names that its domain does not declare")
            return diagnosis

    def _counts(self, value: Any) -> tuple[int, int]:
        """Return progress as two whole numbers: nothing else may cross on the way to a Diagnosis."""
        match value:
            case [int(done), int(total)]:
                return done, total
            case _:
                raise self._failed("sent progress that is not two counts")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
            environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
            with (self._folder / f"{self._suite}.log").open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "bat_core.evaluate.server"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                )
            self._send(self._process, self._opening)
            self._receive(self._process)
        return self._process

    def _send(self, process: subprocess.Popen[bytes], value: Any) -> None:
        assert process.stdin is not None
        try:
            frames.write(cast(BinaryIO, process.stdin), value)
        except OSError as error:
            raise self._failed("died") from error

    def _receive(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        try:
            answer = frames.read(cast(BinaryIO, process.stdout), LARGEST)
        except (EOFError, ValueError, OSError) as error:
            raise self._failed("died or sent garbage") from error
        if not isinstance(answer, dict) or "error" in answer:
            kind = answer.get("error") if isinstance(answer, dict) else None
            raise self._failed(f"failed with {kind if kind in ERRORS else 'an error'}")
        return answer

    def _failed(self, what: str) -> EvaluatorError:
        self.close()
        log = self._folder / f"{self._suite}.log"
        return EvaluatorError(f"the {self._suite} evaluator process {what}", remedy=f"see {log}, then run again")

    def close(self) -> None:
        """End the process. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # it died with a request unread
                    stream.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()
