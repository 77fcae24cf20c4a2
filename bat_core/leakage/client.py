"""The trainer's side of the preflight: samples go to a checker process, verdicts come back.

Anything unexpected from the checker ends the preflight with an error; nothing is ever passed for want of an answer.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from bat_core.errors import LeakageError
from bat_core.leakage.receipts import LeakageReceipt, verified
from bat_core.leakage.verdict import worst
from bat_core.model.base import JsonObject
from bat_core.model.leakage import Checked, LeakageFinding
from bat_core.processes import frames
from bat_core.processes.child import Child

BUILT_IN_RULES = tuple(
    f"bat_core.leakage.rules.{name}:{name.capitalize()}Rule"
    for name in ("answer", "fact", "identifier", "path", "secret", "text", "trace")
)
_CHECKER = "bat_core.leakage.checker"
_BATCH = 64
_BATCH_BYTES = 4 * 1024 * 1024
_REMEDY = "nothing was cleared; look at the checker's log and run the preflight again"


class Preflight:
    """A running checker. Use as a context manager.

    Args:
        source: `module:function`, called in the checker only; it returns the held-out items.
        arguments: Keyword arguments of the source.
        rules: Rules as `module:Class`.
        environment: Variables that the checker gets besides a few harmless ones of ours; with a `PYTHONPATH` of its
            own it finds sources that this process can't import.
        python: Interpreter of the checker.
        timeout: Seconds to wait for any one answer.
        log: File for what the checker prints; it may hold held-out text, so the default is nowhere.

    Attributes:
        covered: How many items each rule covers.
        refused: How many items no rule is known to cover.
        digest: Identity of the held-out items and rules.
        receipts: The checker's signed word for all that it answered.
    """

    def __init__(
        self,
        source: str,
        arguments: JsonObject | None = None,
        *,
        rules: Sequence[str] = BUILT_IN_RULES,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
        timeout: float = 300.0,
        log: Path | None = None,
    ) -> None:
        self._receipt_key = secrets.token_bytes(32)
        self._opening = {
            "rules": list(rules),
            "source": source,
            "arguments": arguments or {},
            "receipt_key": self._receipt_key.hex(),
        }
        self.receipts: list[LeakageReceipt] = []
        self._environment, self._python = environment, python
        self._timeout = timeout
        self._log = log or Path(os.devnull)
        self._process: Child | None = None
        self.covered: dict[str, int] = {}
        self.refused = 0
        self.digest = ""

    def __enter__(self) -> Self:
        """Start the checker and wait until its index is ready."""
        try:
            self._process = Child(_CHECKER, self._log, self._environment, self._python)
        except OSError as error:
            raise LeakageError(f"the leakage checker can't be started ({error.strerror})", remedy=_REMEDY) from error
        self._greeted(self._ask(frames.encode(self._opening)))
        return self

    def _greeted(self, answer: Any) -> None:
        """Take in what the index covers."""
        try:
            self.covered = {str(name): int(count) for name, count in answer["covered"].items()}
            self.refused, self.digest = int(answer["refused"]), str(answer["index"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._failed("the leakage checker answered garbage") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the checker."""
        self.close()

    def close(self) -> None:
        """End the checker. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def check(self, samples: Iterable[tuple[str, Any]]) -> list[Checked]:
        """Return a verdict for each (id, JSON value), in order.

        Raises:
            LeakageError: The checker died, answered garbage or took too long; nothing may be used then.
        """
        return [checked for batch in _batches(samples) for checked in self._check(batch)]

    def _check(self, batch: list[tuple[str, bytes | None]]) -> Iterator[Checked]:
        sent = [(sample_id, body) for sample_id, body in batch if body is not None]
        answered = iter(self._answers(sent) if sent else ())
        for sample_id, body in batch:
            yield _unreadable(sample_id) if body is None else next(answered)

    def _answers(self, sent: list[tuple[str, bytes]]) -> list[Checked]:
        body = b'{"samples":[' + b",".join(body for _, body in sent) + b"]}"
        answer = self._ask(frames.framed(body))
        try:
            checked = [Checked.model_validate(one) for one in answer["checked"]]
        except (KeyError, TypeError, ValidationError) as error:
            raise self._failed("the leakage checker answered garbage") from error
        if [one.id for one in checked] != [sample_id for sample_id, _ in sent]:
            raise self._failed("the leakage checker answered for other samples")
        if any(one.verdict != worst(one.findings) for one in checked):
            raise self._failed("the leakage checker contradicts itself")
        try:
            self.receipts.append(verified(self._receipt_key, answer.get("receipt"), body, self.digest, checked))
        except LeakageError:
            self._kill()
            raise
        return checked

    def _ask(self, frame: bytes) -> Any:
        if self._process is None:
            raise LeakageError("the leakage checker is not running", remedy="use Preflight as a context manager")
        answered = False
        try:
            answer = self._process.ask(frame, self._timeout)
            answered = True
        except (OSError, EOFError, ValueError) as error:
            raise self._failed(f"the leakage checker failed ({type(error).__name__})") from error
        finally:
            if not answered:  # also after an interrupt: a late answer must not be taken for the next one
                self._kill()
        if not isinstance(answer, dict):
            raise self._failed("the leakage checker answered garbage")
        if "error" in answer:
            raise self._failed(f"the leakage checker refused: {answer['error']}")
        return answer

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self.close()

    def _failed(self, message: str) -> LeakageError:
        """End the checker and return the error to raise."""
        self._kill()
        return LeakageError(message, remedy=_REMEDY)


def _batches(samples: Iterable[tuple[str, Any]]) -> Iterator[list[tuple[str, bytes | None]]]:
    batch: list[tuple[str, bytes | None]] = []
    size = 0
    for sample_id, value in samples:
        body = _encoded(sample_id, value)
        batch.append((sample_id, body))
        size += len(body or b"")
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _encoded(sample_id: str, value: Any) -> bytes | None:
    """Return a sample as JSON, None if it can't be: only that sample is then rejected, not the batch."""
    try:
        return frames.encode({"id": sample_id, "value": value})[frames.HEADER :]
    except (TypeError, ValueError, RecursionError):
        return None


def _unreadable(sample_id: str) -> Checked:
    finding = LeakageFinding(rule="view", reason="not JSON, too large, or nested too deep to be checked")
    return Checked(id=sample_id, verdict="block", findings=(finding,))
