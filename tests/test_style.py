"""Rules that the linter can't express."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted([*ROOT.glob("bat_core/**/*.py"), *ROOT.glob("domains/*/src/**/*.py")])
BLIND = re.compile(r"^\s*except\s*(:|\(?\s*(Exception|BaseException)\b)")


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_and_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert path.name not in ("utils.py", "util.py", "helpers.py", "misc.py", "common.py")
    assert not text.strip() or ast.get_docstring(ast.parse(text))


def test_functions_are_short() -> None:
    lengths = dict(pair for path in FILES for pair in functions(path))
    assert {name: n for name, n in lengths.items() if n > 60} == {}
    assert statistics.median(lengths.values()) <= 12


def test_what_catches_everything_is_marked_as_a_boundary_or_raises_again() -> None:
    unmarked = []
    for path in FILES:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if BLIND.match(line) and "boundary" not in line and not reraises(lines, number):
                unmarked.append(f"{path.relative_to(ROOT)}:{number + 1}")
    assert unmarked == []


def reraises(lines: list[str], number: int) -> bool:
    """Whether the handler that starts at `number` ends in a bare `raise`: cleaning up is no swallowing."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    body = []
    for line in lines[number + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        body.append(line.strip())
    return "raise" in body


def test_no_failure_becomes_a_zero() -> None:
    pattern = re.compile(r"except[^\n]*:\s*\n\s*(return|reward|score|value)\s*(=\s*)?0\.0\s*$", re.MULTILINE)
    core = ROOT.glob("bat_core/**/*.py")  # a domain may well say that an unreadable answer is worth nothing
    assert [str(path) for path in core if pattern.search(path.read_text())] == []


def test_test_folders_are_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_the_core_names_no_machine() -> None:
    pattern = re.compile(r"""["'](/home/|/root/|/Users/|https?://(?!json-schema\.org|www\.w3\.org))""")
    found = [str(path.relative_to(ROOT)) for path in ROOT.glob("bat_core/**/*.py") if pattern.search(path.read_text())]
    assert found == []
