"""Measure the leakage preflight: recall and false positives on a labelled set, speed on a corpus of clean samples.

    python benchmarks/leakage.py DATA [--samples 20000] [--workers 1 2] [--rows 1000000]

DATA holds heldout_index.json, background.jsonl, samples.jsonl and labels.jsonl. Speed is bytes of JSON lines for
each second of processor time, from reading lines to verdicts: the best of three passes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bat_core.leakage.building import build_index
from bat_core.leakage.bulk import check_file
from bat_core.leakage.index_file import read_index
from bat_core.leakage.keys import key_of
from bat_core.leakage.panel import Panel
from bat_core.leakage.rows import Line, check_lines, chunks

_DIGITS = re.compile(r"\d+")


def variants(lines: list[str], count: int, seed: int) -> Iterator[str]:
    """Yield clean samples, each with other digits than the one that it was made from."""
    rng = random.Random(seed)
    for number in range(count):
        line = lines[number % len(lines)]
        if number >= len(lines):
            line = _DIGITS.sub(lambda match: _other(match.group(), rng), line)
        yield line


def _other(digits: str, rng: random.Random) -> str:
    if digits[0] == "0" or len(digits) > 4:
        return digits
    return str(rng.randrange(10 ** (len(digits) - 1), 10 ** len(digits)))


def corpus(source: Path, path: Path, count: int, seed: int = 1) -> int:
    """Write a corpus of clean samples; return its bytes."""
    lines = source.read_text().splitlines()
    with path.open("w") as file:
        for line in variants(lines, count, seed):
            file.write(line + "\n")
    return path.stat().st_size


def many_items(source: Path, path: Path, times: int) -> int:
    """Write a held-out side that is `times` as large: further tasks with other digits. Return the number of items."""
    items = json.loads(source.read_text())["items"]
    rng = random.Random(7)
    rows = list(items)
    for copy in range(1, times):
        for item in items:
            row = {**item, "item_id": f"{item['item_id']}-{copy}", "task": f"{item['task']}-{copy}"}
            row["text"] = _hex(item["text"], rng) if item["kind"] in HEX else _digits(item["text"], rng)
            rows.append(row)
    path.write_text(json.dumps({"items": rows}))
    return len(rows)


HEX = ("uuid", "commit", "mask_sha256")


def _hex(text: str, rng: random.Random) -> str:
    return re.sub(r"[0-9a-f]", lambda _: rng.choice("0123456789abcdef"), text)


def _digits(text: str, rng: random.Random) -> str:
    return re.sub(r"\d", lambda _: rng.choice("123456789"), text)


def recall(data: Path, panel: Panel) -> None:
    """Print recall and false positives at block, and each sample that was missed or blocked wrongly."""
    labels = {row["id"]: row for row in map(json.loads, (data / "labels.jsonl").open())}
    verdicts = {}
    for chunk in chunks(data / "samples.jsonl"):
        verdicts |= {one.id: one.verdict for one in check_lines(panel, chunk)}
    leaks = [name for name, row in labels.items() if row["leak"]]
    clean = [name for name, row in labels.items() if not row["leak"]]
    missed = [name for name in leaks if verdicts[name] != "block"]
    wrong = [name for name in clean if verdicts[name] == "block"]
    print(f"recall (block)      {1 - len(missed) / len(leaks):.4f}  ({len(leaks)} leaks)")
    print(f"false positives     {len(wrong) / len(clean):.4f}  ({len(clean)} clean samples)")
    for name in missed:
        print(f"  missed  {name}  {labels[name]['kind']}  ({verdicts[name]})")
    for name in wrong:
        print(f"  blocked {name}  {labels[name]['kind']}")


def speed(panel: Panel, path: Path, repeats: int = 3) -> tuple[float, int]:
    """Return the best megabytes a second of processor time, and how many samples were blocked."""
    best, blocked = 0.0, 0
    for _ in range(repeats):
        began, blocked = time.process_time(), 0
        for chunk in chunks(path):
            blocked += sum(one.verdict == "block" for one in check_lines(panel, chunk))
        best = max(best, path.stat().st_size / 1e6 / (time.process_time() - began))
    return best, blocked


def where(panel: Panel, path: Path) -> None:
    """Print where the time goes, by a profile of one pass."""
    import cProfile
    import pstats

    lines = [line for chunk in chunks(path) for line in chunk][:4000]
    profile = cProfile.Profile(time.process_time)
    profile.runcall(check_lines, panel, lines)
    rows: Any = pstats.Stats(profile, stream=io.StringIO())
    total = rows.total_tt
    wanted = {
        "parsing JSON": ("strict.py", "loads"),
        "collecting texts": ("leaves.py", "texts_of"),
        "decoding": ("scan.py", "_decoded"),
        "identifiers": ("identifier.py", "examine"),
        "paths": ("path.py", "examine"),
        "answers": ("answer.py", "examine"),
        "facts": ("fact.py", "examine"),
        "texts and traces": ("copied.py", "examine"),
        "secrets": ("secret.py", "examine"),
    }
    print("where the time goes (profiled, so Python functions weigh more than they do)")
    for name, (file, function) in wanted.items():
        spent = sum(row[3] for key, row in rows.stats.items() if key[0].endswith(f"/{file}") and key[2] == function)
        print(f"  {name:<18} {spent / total:5.1%}")


def scaling(path: Path, index: Path, workers: list[int]) -> None:
    """Print wall-clock speed with several processes, starting them included."""
    for count in workers:
        began = time.monotonic()
        check_file(path, index, count, None, lambda row: None)
        spent = time.monotonic() - began
        print(f"{count} process(es)        {path.stat().st_size / 1e6 / spent:.1f} MB/s of wall clock")


def streaming(source: Path, index: Path, rows: int) -> None:
    """Print the memory at its peak before and after many rows."""
    panel, _ = read_index(index, key_of(index))
    lines = source.read_text().splitlines()[:200]
    pool = [line.encode() + b"\n" for line in lines]
    done, marks = 0, {}
    while done < rows:
        check_lines(panel, [Line(done + n, line) for n, line in enumerate(pool)])
        done += len(pool)
        if done in (rows // 10 // 200 * 200, rows // 200 * 200):
            marks[done] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print("peak memory         " + ", ".join(f"{mark} MB after {count} rows" for count, mark in marks.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rows", type=int, default=0, help="also stream so many rows (takes minutes)")
    arguments = parser.parse_args()
    os.environ.pop("BAT_LEAKAGE_KEY", None)
    print("load average        " + " ".join(f"{load:.1f}" for load in os.getloadavg()))
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    data: Path = arguments.data
    index, corpus_path = folder / "heldout.idx", folder / "corpus.jsonl"
    began = time.process_time()
    said = build_index(data / "heldout_index.json", data / "background.jsonl", index)
    print(
        f"index               {said['items']} items, {said['bytes'] / 1e6:.1f} MB, {time.process_time() - began:.1f} s"
    )
    panel, _ = read_index(index, key_of(index))
    recall(data, panel)
    times = {}
    for count in (arguments.samples // 4, arguments.samples):
        size = corpus(data / "background.jsonl", corpus_path, count)
        times[count], blocked = speed(panel, corpus_path)
        seconds = size / 1e6 / times[count]
        print(f"{count:>6} samples      {times[count]:.1f} MB/s, {count / seconds:.0f} samples/s, {blocked} blocked")
    where(panel, corpus_path)
    scaling(corpus_path, index, arguments.workers)
    many, large = folder / "many.json", folder / "many.idx"
    items = many_items(data / "heldout_index.json", many, 10)
    build_index(many, data / "background.jsonl", large)
    slower, _ = speed(read_index(large, key_of(large))[0], corpus_path, 1)
    print(f"{items} held-out items  {slower:.1f} MB/s: {times[arguments.samples] / slower:.2f} times as long")
    if arguments.rows:
        streaming(corpus_path, index, arguments.rows)


if __name__ == "__main__":
    main()
