from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_a_room_imports_only_rooms_below_it_and_no_domain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = pytest.importorskip("importlinter.cli")
    monkeypatch.chdir(ROOT)
    found = cli.lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert found == 0, capsys.readouterr().out


def test_every_room_has_its_place() -> None:
    layers = (ROOT / ".importlinter").read_text()
    rooms = [path.parent.name for path in ROOT.glob("bat_core/*/__init__.py")]
    assert [room for room in rooms if f"bat_core.{room}" not in layers] == []
