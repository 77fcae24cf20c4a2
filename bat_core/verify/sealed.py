"""A sealed rollout in one line of text: everything that verifiers may read, and labels if somebody has judged it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from bat_core.errors import VerifierError
from bat_core.model.base import Value
from bat_core.model.evidence import Evidence
from bat_core.model.message import Message
from bat_core.model.receipt import Receipt
from bat_core.model.rubric import Rubric
from bat_core.model.task import Task

REMEDY = "write such files with `bat verify FILE --export`"


class Blob(Value):
    """The content of a file."""

    encoding: Literal["utf-8", "base64"] = "utf-8"
    content: str

    @classmethod
    def of(cls, data: bytes) -> Blob:
        """Return bytes as readable as they can be written."""
        try:
            return cls(content=data.decode())
        except UnicodeDecodeError:
            return cls(encoding="base64", content=base64.b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes."""
        return base64.b64decode(self.content) if self.encoding == "base64" else self.content.encode()

    @model_validator(mode="after")
    def _decodes(self) -> Blob:
        try:
            self.data  # noqa: B018
        except (binascii.Error, UnicodeEncodeError) as error:
            raise ValueError(f"not {self.encoding}: {error}") from error
        return self


class SealedRollout(Value):
    """One rollout with its evidence inline.

    Attributes:
        id: Unique within its file.
        domain: Whose checks and contract judge it.
        rubrics: The contracts; more than one for an E2E rollout.
        labels: True verdicts by item id, where somebody has judged.
    """

    id: str
    domain: str
    task: Task
    focus: str
    rubrics: tuple[Rubric, ...] = Field(min_length=1)
    start: dict[str, Blob] = {}
    files: dict[str, Blob] = {}
    history: tuple[Receipt, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    messages: tuple[Message, ...] = ()
    final: str = ""
    odd: tuple[str, ...] = ()
    labels: dict[str, bool] = {}

    @classmethod
    def of(cls, name: str, domain: str, rubrics: Iterable[Rubric], evidence: Evidence) -> SealedRollout:
        """Return the line of a rollout."""
        return cls(
            id=name,
            domain=domain,
            task=evidence.task,
            focus=evidence.focus,
            rubrics=tuple(rubrics),
            start=_blobs(evidence.start),
            files=_blobs(evidence.files),
            history=evidence.history,
            receipts=evidence.receipts,
            messages=evidence.messages,
            final=evidence.final,
            odd=evidence.odd,
        )

    def evidence(self) -> Evidence:
        """Return what verifiers read."""
        return Evidence(
            task=self.task,
            focus=self.focus,
            start={path: blob.data for path, blob in self.start.items()},
            files={path: blob.data for path, blob in self.files.items()},
            history=self.history,
            receipts=self.receipts,
            messages=self.messages,
            final=self.final,
            odd=self.odd,
        )


def read_sealed(path: Path) -> Iterator[SealedRollout]:
    """Return the rollouts of a JSONL file.

    Raises:
        VerifierError: For a line that is none, with its number.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise VerifierError(f"{path} is not a text file: {error}", remedy=REMEDY) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield SealedRollout.model_validate(json.loads(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise VerifierError(f"{path}:{number}: {where or 'line'}: {first['msg']}", remedy=REMEDY) from error
        except ValueError as error:
            raise VerifierError(f"{path}:{number} is not JSON: {error}", remedy=REMEDY) from error


def write_sealed(path: Path, rollouts: Iterable[SealedRollout]) -> None:
    """Write rollouts as JSONL, complete or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text("".join(one.model_dump_json() + "\n" for one in rollouts), encoding="utf-8")
    partial.replace(path)


def _blobs(files: Mapping[str, bytes]) -> dict[str, Blob]:
    return {path: Blob.of(data) for path, data in sorted(files.items())}
