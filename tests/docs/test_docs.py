"""The documentation does what it says: its commands run, its names exist, its site builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
BLOCK = re.compile(r"^<!-- test -->\n```(bash|python)\n(.*?)^```$", re.M | re.S)
SLOW = ("README.md", "how-to/leakage.md", "tutorials/five-minutes.md")
LIMIT = 600
"""Seconds for one block."""


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in BLOCK.finditer(page.read_text())]


def marked() -> list[object]:
    found = []
    for page in pages():
        if blocks(page):
            name = str(page.relative_to(ROOT))
            found.append(pytest.param(page, id=name, marks=pytest.mark.slow if name.endswith(SLOW) else ()))
    return found


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a reader has: bat on PATH. The cache is fresh: nothing is there that a new reader would not have."""
    return {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
        "BAT_CACHE": str(tmp_path_factory.mktemp("cache")),
        "OMP_NUM_THREADS": "1",
    }


@pytest.mark.parametrize("page", marked())
def test_marked_blocks_run_in_order(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    for language, code in blocks(page):
        command = ["bash", "-euo", "pipefail", "-c", code] if language == "bash" else [sys.executable, "-c", code]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            timeout=LIMIT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{page.name}:\n{code}\n{done.stdout[-4000:]}"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, text=True, capture_output=True, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "site" / "tutorials" / "five-minutes" / "index.html").exists()


def test_every_command_and_option_stands_in_the_reference() -> None:
    import click
    import typer

    from bat_core.cli.main import COMMANDS, application

    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    for name in COMMANDS:
        command = typer.main.get_command(application(name)).commands[name]  # type: ignore[attr-defined]
        leaves = {f"{name} {sub}": leaf for sub, leaf in getattr(command, "commands", {}).items()} or {name: command}
        for title, leaf in leaves.items():
            section = re.search(rf"^## bat {title}$(.*?)(?=^## |\Z)", text, re.M | re.S)
            assert section, f"bat {title} has no section"
            for option in [word for p in leaf.params if isinstance(p, click.Option) for word in p.opts]:
                assert option in section[1] or option == "--help", f"bat {title} {option}"


def test_every_error_stands_on_its_page() -> None:
    from bat_core import errors

    names = {name for name, value in vars(errors).items() if isinstance(value, type)}
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "errors.md").read_text(), re.M)
    assert set(listed) == names
    assert len(listed) == len(names)


def test_the_front_door_page_lists_what_it_gives() -> None:
    import bat_core

    text = (ROOT / "docs" / "reference" / "front-door.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.M) == bat_core.__all__


def test_settings_named_in_the_pages_exist() -> None:
    from bat_core.config.load import known_keys

    keys = set(known_keys())
    sections = {key.split(".")[0] for key in keys if "." in key}
    wrong = {
        f"{page.name}: {word}"
        for page in pages()
        for word in re.findall(rf"\b((?:{'|'.join(sections)})\.[a-z_]+)=", page.read_text())
        if word not in keys and word != "train.setps"
    }
    assert not wrong


def test_pages_of_the_index_for_machines_exist() -> None:
    linked = re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / "llms.txt").read_text())
    assert len(linked) > 10
    assert not [link for link in linked if not (ROOT / "docs" / link).is_file()]


def test_local_links_of_the_front_pages_exist() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md"):
        linked = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text())
        assert not [link for link in linked if "://" not in link and not (ROOT / link).exists()], name


def test_rules_for_contributors_fit_on_a_screen_or_two() -> None:
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= 100
