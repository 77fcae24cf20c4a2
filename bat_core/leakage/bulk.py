"""Checking a file of samples with one process or several, in order and in constant memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from bat_core.leakage.index_file import read_index
from bat_core.leakage.keys import key_of
from bat_core.leakage.panel import Panel
from bat_core.leakage.rows import Line, check_lines, chunks
from bat_core.model.leakage import Checked

_AHEAD = 4
"""Chunks in work for each process."""


class Answer(NamedTuple):
    """What is said of a chunk: a JSON text for each sample that is not a pass, and of all of them, and counts."""

    rows: list[str]
    found: list[str]
    counts: dict[str, int]


def check_file(
    samples: Path, index: Path, workers: int, sink: TextIO | None, show: Callable[[str], None]
) -> dict[str, int]:
    """Check a file; return how many samples got which verdict.

    Args:
        samples: One JSON object a line.
        index: Index file.
        workers: Processes.
        sink: Where one JSON document about all samples goes.
        show: Gets the JSON of each sample that is not a pass, if there is no sink.
    """
    key = key_of(index)
    panel, about = read_index(index, key)
    total = {"pass": 0, "review": 0, "block": 0}
    first = True
    for answer in _answers(samples, index, panel, workers):
        for name, count in answer.counts.items():
            total[name] += count
        if sink is not None:
            sink.write('{"samples": [\n' if first else ",\n")
            sink.write(",\n".join(answer.rows))
        else:
            for row in answer.found:
                show(row)
        first = False
    if sink is not None:
        end: dict[str, Any] = {"counts": total, "index": about["index"], "covered": about["covered"]}
        end |= {"refused": about["refused"], "confidentiality": "none"}
        sink.write("\n], " + json.dumps(end)[1:] + "\n")
        sink.flush()
    return total


def _answers(samples: Path, index: Path, panel: Panel, workers: int) -> Iterator[Answer]:
    if workers == 1:
        for chunk in chunks(samples):
            yield _said(check_lines(panel, chunk))
        return
    context = get_context("spawn")
    with context.Pool(workers, _begin, (str(index),)) as pool:
        waiting: list[Any] = []
        for chunk in chunks(samples):
            waiting.append(pool.apply_async(_work, (chunk,)))
            if len(waiting) >= workers * _AHEAD:
                yield waiting.pop(0).get()
        for one in waiting:
            yield one.get()


_panel: list[Panel] = []


def _begin(index: str) -> None:
    _panel.append(read_index(Path(index), key_of(Path(index)))[0])


def _work(chunk: list[Line]) -> Answer:
    return _said(check_lines(_panel[0], chunk))


def _said(checked: list[Checked]) -> Answer:
    counts = {"pass": 0, "review": 0, "block": 0}
    rows, found = [], []
    for one in checked:
        counts[one.verdict] += 1
        row = _row(one)
        rows.append(row)
        if one.findings:
            found.append(row)
    return Answer(rows, found, counts)


def _row(one: Checked) -> str:
    if not one.findings:
        return f'{{"id": {json.dumps(one.id)}, "verdict": "{one.verdict}", "findings": []}}'
    return json.dumps({"id": one.id, "verdict": one.verdict, "findings": [f.model_dump() for f in one.findings]})
