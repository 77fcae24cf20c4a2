"""Held-out items from a file of the benchmark's owner: JSON with `items`, a plain list, or one item a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from bat_core.errors import LeakageError
from bat_core.leakage.strict import loads
from bat_core.model.leakage import HeldoutItem

Kind = Literal["identifier", "path", "text", "answer", "trace", "secret"]

KINDS: dict[str, Kind] = {
    "identifier": "identifier",
    "id": "identifier",
    "task_id": "identifier",
    "case_id": "identifier",
    "patient_id": "identifier",
    "uuid": "identifier",
    "guid": "identifier",
    "commit": "identifier",
    "hash": "identifier",
    "digest": "identifier",
    "sha256": "identifier",
    "mask_sha256": "identifier",
    "accession": "identifier",
    "path": "path",
    "file": "path",
    "text": "text",
    "prompt": "text",
    "question": "text",
    "report": "text",
    "solution": "text",
    "code": "text",
    "rubric": "text",
    "answer": "answer",
    "answer_num": "answer",
    "answer_text": "answer",
    "answer_label": "answer",
    "label": "answer",
    "number": "answer",
    "trace": "trace",
    "log": "trace",
    "transcript": "trace",
    "canary": "secret",
    "secret": "secret",
}
_SHARED = "all"
_LEAST_WORDS = 8


def read_heldout(path: Path) -> list[HeldoutItem]:
    """Return the items of a file.

    Raises:
        LeakageError: It can't be read, or a row isn't an item; says which, never what it holds.
    """
    rows = _rows(path)
    items = [_item(row, f"{path}, item {number}") for number, row in enumerate(rows, 1)]
    if not items:
        raise LeakageError(
            f"{path} holds no items", remedy='give {"items": [{"item_id", "task", "kind", "text"}, ...]}'
        )
    twice = _repeated(item.item_id for item in items)
    if twice:
        raise LeakageError(f"{path} has the item_id {twice!r} twice", remedy="give each item an id of its own")
    return items


def _rows(path: Path) -> list[Any]:
    remedy = "give a JSON file with `items`, or one item a line"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LeakageError(f"can't read {path} ({error.strerror})", remedy="check the name") from error
    except UnicodeDecodeError as error:
        raise LeakageError(f"{path} is not UTF-8 (byte {error.start})", remedy=remedy) from error
    try:
        value = loads(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            value = [loads(line) for line in lines]
        except (ValueError, RecursionError):
            raise LeakageError(f"{path} is not JSON ({_where(error)})", remedy=remedy) from error
    rows = value.get("items") if isinstance(value, dict) and "items" in value else value
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise LeakageError(f"{path} holds no list of items", remedy=remedy)
    return rows


def _where(error: Exception) -> str:
    return f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else type(error).__name__


def _item(row: Any, where: str) -> HeldoutItem:
    remedy = "each item needs item_id, task, kind and text, all strings"
    if not isinstance(row, dict):
        raise LeakageError(f"{where} is not an object", remedy=remedy)
    for name in ("item_id", "kind", "text"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise LeakageError(f"{where} has no {name}", remedy=remedy)
    if not isinstance(row.get("task"), str | None):
        raise LeakageError(f"{where} has a task that is no string", remedy=remedy)
    text, label = row["text"], row["kind"]
    kind = KINDS.get(label.lower()) or _by_shape(text)
    if kind == "answer":
        text = _with_topic(row, text)
    return HeldoutItem(
        item_id=row["item_id"],
        task=row.get("task") or _SHARED,
        kind=kind,
        text=text,
        label="" if label == kind else label,
    )


def _with_topic(row: dict[str, Any], text: str) -> str:
    """Return an answer after its topic, if the row names one."""
    topic, terms = row.get("topic"), row.get("topic_terms")
    if isinstance(topic, str) and topic.strip():
        return f"{topic}: {text}"
    if isinstance(terms, list) and all(isinstance(term, str) for term in terms) and terms:
        return f"{' '.join(terms)}: {text}"
    return text


def _by_shape(text: str) -> Kind:
    """Return how to look for an item of a kind that we don't know."""
    words = text.split()
    if len(words) >= _LEAST_WORDS:
        return "trace" if "\n" in text.strip() else "text"
    if len(words) == 1:
        return "path" if re.search(r"[/\\]", text) else "identifier"
    return "answer" if re.search(r"\d", text) else "text"


def _repeated(names: Iterator[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
