"""From a line of a rollouts file to sealed evidence and a rubric."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from bat_core.errors import VerifierError
from bat_core.model.evidence import Evidence
from bat_core.model.receipt import Receipt
from bat_core.model.rubric import Rubric, RubricItem
from bat_core.model.task import Task


def read(line: dict[str, Any]) -> tuple[Rubric, Evidence]:
    """Return rubric and sealed rollout of a line.

    What the harness knows beyond receipts (who wrote which path and when, hashes of what was given) is for graders
    only and travels in the task's private part.

    Raises:
        VerifierError: If the line is not of this format.
    """
    try:
        return _rubric(line), _evidence(line)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        name = str(line.get("id"))[:40] if isinstance(line, dict) else "?"
        raise VerifierError(
            f"rollout {name!r} is not of the format: {type(error).__name__}: {error}", remedy="see benchmarks/README.md"
        ) from error


def _rubric(line: dict[str, Any]) -> Rubric:
    """Return the items of a line, each with the check of its own name."""
    items = tuple(
        RubricItem(id=str(item["id"]), criterion=str(item["text"]), verifier=f"check:{item['id']}")
        for item in line["rubric"]
    )
    return Rubric(stage=str(line["stage"]), items=items)


def _evidence(line: dict[str, Any]) -> Evidence:
    task, trusted = dict(line["task"]), dict(line["trusted"])
    start = {str(path): str(text).encode() for path, text in line["inputs"].items()}
    made = {str(path): _bytes(artifact) for path, artifact in line["artifacts"].items()}
    links = sorted(path for path, seen in trusted["manifest"].items() if "link" in seen)
    return Evidence(
        task=Task(
            id=str(task["task_id"]), domain="drill", track=str(task.get("metric", "none")), seed=int(task["seed"]),
            public=task, private={"trusted": trusted, "log": list(line["tool_log"])},
        ),
        focus=str(line["stage"]),
        start=start,
        files={**start, **made},
        receipts=tuple(_receipt(event) for event in line["tool_log"]),
        final=str(line.get("final_message") or ""),
        odd=tuple(links),
    )  # fmt: skip


def _receipt(event: dict[str, Any]) -> Receipt:
    code = event.get("exit_code")
    return Receipt(
        seq=int(event["seq"]),
        provider="recorded",
        language=str(event["tool"]),
        code=str(dict(event.get("args") or {}).get("cmd", "")),
        status="exited",
        rc=None if code is None else int(code),
        stdout=str(event.get("stdout") or ""),
        stderr=str(event.get("stderr") or ""),
        out_sha="",
        err_sha="",
        ws_before="",
        ws_after="written" if event.get("wrote") else "",
    )


def _bytes(artifact: dict[str, Any]) -> bytes:
    content = str(artifact.get("content", ""))
    if artifact.get("encoding", "utf-8") == "base64":
        try:
            return base64.b64decode(content, validate=True)
        except binascii.Error:
            return b""
    return content.encode("utf-8", "surrogatepass")
