"""Control groups: made, joined, limited, and gone again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bat_core.model.sandbox import Limits
from bat_core.sandboxes import cgroup
from bat_core.sandboxes.ceiling import memory_ceiling
from bat_core.sandboxes.cgroup import ControlGroup
from bat_core.sandboxes.descent import room_beside, stepping_down
from bat_core.sandboxes.owner import this_process

rootly = pytest.mark.skipif(not cgroup.available(), reason="only root makes control groups, and not everywhere")


@rootly
def test_a_group_is_limited_and_leaves_nothing() -> None:
    limits = Limits(memory=100 << 20, disk=8 << 20, pids=10)
    group = ControlGroup(limits)
    held = [
        int((f / n).read_text())
        for f in group.folders
        for n in ("memory.limit_in_bytes", "memory.max")
        if (f / n).exists()
    ]
    assert held and all(0 < value <= memory_ceiling(limits) for value in held)
    assert group.oom_kills() == 0 and all(Path(door).exists() for door in group.doors)
    group.remove()
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


@rootly
def test_one_in_use_is_not_torn_away_and_goes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_WAIT_S", 0.05)
    group = ControlGroup(Limits())
    child = subprocess.Popen(["sleep", "60"])
    for door in group.doors:
        Path(door).write_text(str(child.pid))
    group.remove()
    assert all(folder.exists() for folder in group.folders)
    child.kill()
    child.wait()
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


@rootly
def test_only_groups_of_dead_owners_are_reaped() -> None:
    alive = ControlGroup(Limits())
    ours = this_process()
    left = [folder.with_name(f"bat-{ours.pid}-1-left") for folder in alive.folders]
    for folder in left:
        folder.mkdir()
    assert {str(folder) for folder in left} <= set(cgroup.reap())
    assert all(folder.exists() for folder in alive.folders)
    alive.remove()


def test_the_room_for_file_systems_covers_nothing_that_is_needed() -> None:
    assert room_beside([]) != room_beside(["/mnt/python/lib", "/media"]) not in ("/mnt", "/media")
    assert room_beside(["/mnt2"]) == room_beside([])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root steps down")
def test_stepping_down_is_for_good(tmp_path: Path) -> None:
    show = ["/bin/sh", "-c", "id -u; id -G; umask; grep -c . /proc/self/mounts"]
    done = subprocess.run(stepping_down(show, 123456, [str(tmp_path)]), capture_output=True, text=True, check=True)
    assert done.stdout.split()[:3] == ["123456", "123456", "0022"]
