"""The loop's side of the firewall: policies go in by name, a `Diagnosis` comes out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from bat_core import errors
from bat_core.errors import EvaluatorError
from bat_core.evaluate.declared import undeclared
from bat_core.hooks.evaluator import EvalProgress
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.training import PolicyRef
from bat_core.processes import frames
from bat_core.processes.child import Child

ERRORS = frozenset(name for name, value in vars(errors).items() if isinstance(value, type))
"""The words for a failure that may cross: the names in our tree of errors."""
LARGEST = 64 * 1024
"""Bytes of an answer; a Diagnosis is far smaller."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


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
        self._process: Child | None = None

    def evaluate(self, policy: PolicyRef, against: PolicyRef | None, progress: EvalProgress) -> Diagnosis:
        """Return the diagnosis of `policy`.

        Raises:
            EvaluatorError: If the process fails, dies, or answers anything but a valid Diagnosis.
        """
        process = self._started()
        request = {"policy": policy.model_dump(), "against": against.model_dump() if against else None}
        answer = self._ask(process, frames.encode(request))
        while "progress" in answer:
            progress(*self._counts(answer["progress"]))
            answer = self._ask(process)
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

    def _started(self) -> Child:
        if self._process is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._process = Child("bat_core.evaluate.server", self._folder / f"{self._suite}.log", ENVIRONMENT)
            self._ask(self._process, frames.encode(self._opening))
        return self._process

    def _ask(self, process: Child, frame: bytes = b"") -> dict[str, Any]:
        """Send a frame, if there is one, and return the next answer."""
        try:
            answer = process.ask(frame, limit=LARGEST)
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
        if process is not None:
            process.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()
