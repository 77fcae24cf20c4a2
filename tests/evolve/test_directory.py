from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest

from bat_core.errors import RunError
from bat_core.evolve.directory import RunDirectory, write_json
from bat_core.registry import package_digest

HOLD = """
import sys
from pathlib import Path
from bat_core.evolve.directory import RunDirectory
held = RunDirectory(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_told_who_holds_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "ready\n"
        with pytest.raises(RunError) as caught:
            RunDirectory(tmp_path)
        who = f"pid {holder.pid} on {socket.gethostname()}"
        assert str(caught.value) == f"{tmp_path} is in use by {who}; wait for it, or choose another --run"
        holder.kill()
    with RunDirectory(tmp_path) as run:  # the lock of a dead process holds nobody up
        assert (tmp_path / "lock").read_text() == f"pid {os.getpid()} on {socket.gethostname()}"
        with pytest.raises(RunError, match=f"is in use by pid {os.getpid()}"):
            RunDirectory(tmp_path)
        assert run.round(3) == tmp_path / "rounds" / "03"


def test_a_directory_whose_journal_is_damaged_is_not_left_locked(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_bytes(b"garbage" * 99)
    for _ in range(2):
        with pytest.raises(RunError, match="is damaged"):
            RunDirectory(tmp_path)


def test_the_key_is_made_once_and_for_the_owner_only(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        key = run.key()
        assert len(key) == 32 and run.key() == key
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with RunDirectory(tmp_path) as run:
        assert run.key() == key


def test_a_run_belongs_to_its_configuration(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        run.bind({"configuration": "sha256:aaaaaaaaaaaaaaaaaaaaaaaa", "domain": "sha256:b"})
    with RunDirectory(tmp_path) as run:
        run.bind({"configuration": "sha256:aaaaaaaaaaaaaaaaaaaaaaaa", "domain": "sha256:b"})
        with pytest.raises(RunError) as caught:
            run.bind({"configuration": "sha256:cccccccccccccccccccccccc"})
    assert str(caught.value) == (
        f"{tmp_path} was begun with another configuration (sha256:aaaaaaaaaaaa, now sha256:cccccccccccc); "
        "give the old settings back, or choose another --run"
    )


def test_half_written_work_is_removed_and_nothing_else(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        for name in ("01", "01.partial", "01.scratch", "02", "010"):
            (tmp_path / "rounds" / name).mkdir(parents=True)
        run.discard(run.round(1))
        assert sorted(p.name for p in (tmp_path / "rounds").iterdir()) == ["010", "02"]


def test_a_json_file_is_old_or_new(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.json"
    write_json(path, {"n": 1})
    with pytest.raises(TypeError):
        write_json(path, {"n": object()})
    assert path.read_text() == '{\n "n": 1\n}\n'


def test_a_domain_that_changed_is_another_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / "single.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, file in (("pack", package / "__init__.py"), ("single", tmp_path / "single.py")):
        module = types.ModuleType(name)
        module.__file__ = str(file)
        if name == "pack":
            module.__path__ = [str(package)]
        monkeypatch.setitem(sys.modules, name, module)
        before = package_digest(f"{name}.part" if name == "pack" else name)
        assert package_digest(name) == before
        file.write_text("x = 1\n")
        assert package_digest(name) != before
