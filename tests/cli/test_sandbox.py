from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bat_core.cli.main import main
from bat_core.sandboxes.docker.provider import DockerProvider


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(["sandbox", *words])
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    said = capsys.readouterr()
    return code, said.out.strip(), said.err.strip()


@pytest.mark.docker
def test_a_domains_image_has_the_same_id_each_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = asyncio.run(DockerProvider(tmp_path).probe())
    if not found.works and "docker" not in os.environ.get("BAT_REQUIRE", "").split(","):
        pytest.skip(f"no Docker engine: {found.detail}")
    first, second = run(capsys, "build", "medimaging"), run(capsys, "build", "medimaging")
    assert first == second and first[0] == 0 and first[1].startswith("sha256:") and len(first[1]) == 71


def test_who_has_no_images_says_so_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "build", "medimaging", "--provider", "bubblewrap")
    assert (code, out) == (2, "") and "\n" not in err
    assert "bubblewrap has no images to build; use --provider docker" in err


def test_nothing_is_reaped_where_nobody_died(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run(capsys, "reap", "--provider", "landlock") == (0, "", "")
