"""The toolbelt stands alone, reads and writes what others read and write, and fails in one line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from bat_medimaging.expert import act
from bat_medimaging.toolbelt.phx import grid, nifti, seg

AXES = ("RAS", "LPS", "RPI", "SAR", "PIL", "ASL")


@pytest.fixture
def workspace(helpers: Any, solve: Any) -> Any:
    return solve(helpers.tasks("segmentation", seed=3)[0], [])


def shell(root: Path, *argv: str) -> str:
    belt = Path(nifti.__file__).parents[1]
    env = {"PATH": f"{belt / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(belt)}
    done = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


def test_it_runs_alone_in_a_shell_and_in_python(workspace: Any) -> None:
    root = workspace.runner.root
    brief = shell(root, sys.executable, "-c", "import phx; phx.brief()")
    belt = Path(nifti.__file__).parents[1] / "bin" / "phx"
    assert os.access(belt, os.X_OK)
    assert shell(root, sys.executable, str(belt), "brief") == brief
    model = brief.rsplit(" ", 1)[1].strip()
    planned = shell(root, sys.executable, str(belt), "plan", f"model={model}", "axes=RAS", "spacing=2.5", "pilot=x")
    assert planned == f"plan {model} RAS 2.5 pilot x conflict none\n"
    assert "commands: batch" in shell(root, sys.executable, str(belt), "fly")


def test_a_batch_without_names_runs_all_that_is_not_reported(helpers: Any, solve: Any) -> None:
    for task in helpers.tasks("segmentation", "recovery", "S4") + helpers.tasks("classification", "recovery", "S4"):
        run = solve(task)
        said = [out for done, out, *_ in run.after if done.stage == "S4"]
        assert said[0].startswith("batch stopped: ")
        assert said[1].startswith("skipped ") and "; left " in said[1]
        assert said[2].startswith("batch done ") and "left" not in said[2]
        first = json.loads(run.start["data/task.json"])["cases"][0]
        assert run.runner.do(act("S4", f"phx.batch({first!r})")) == "batch done 1\n"


def test_it_never_imports_the_package(workspace: Any) -> None:
    code = "import phx, sys; print([m for m in sys.modules if m.startswith(('bat_', 'nibabel', 'scipy'))])"
    assert shell(workspace.runner.root, sys.executable, "-c", code) == "[]\n"


@pytest.mark.parametrize(
    "code",
    [
        "phx.card('nobody')", "phx.verify('nobody')", "phx.use('nobody', 'x.npz')", "phx.header('nobody')",
        "phx.load('nobody')", "phx.run('nobody')", "phx.look('nobody')", "phx.fix(colour=3)", "phx.fix(axes='RAS')",
        "phx.batch('nobody')", "phx.batch('')", "phx.repair('nobody')", "phx.validate()", "phx.card('../data')",
        "phx.header('../../../etc')",
    ],
)  # fmt: skip
def test_mistakes_get_one_line(workspace: Any, code: str) -> None:
    said = workspace.runner.do(act("S1", code))
    assert said.count("\n") == 1 and len(said) <= 80
    assert workspace.runner.receipts[-1].rc == 0


@pytest.mark.parametrize("axes", AXES)
def test_volumes_are_what_nibabel_says(axes: str) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 1000, (5, 6, 7)).astype("i2")
    affine = nibabel.orientations.inv_ornt_aff(
        nibabel.orientations.axcodes2ornt(tuple(axes)), (5, 6, 7)
    ) @ np.diag([2.0, 3.0, 4.0, 1.0])  # fmt: skip
    blob = nifti.write(data, affine)
    theirs = nibabel.Nifti1Image.from_bytes(__import__("gzip").decompress(blob))
    assert (np.asarray(theirs.dataobj) == data).all() and np.allclose(theirs.affine, affine, atol=1e-4)
    assert grid.codes(affine) == "".join(nibabel.aff2axcodes(affine))
    mine = nifti.read(nibabel_bytes(data, affine))
    assert (mine.data == data).all() and np.allclose(mine.affine, affine, atol=1e-4) and mine.dtype == "i2"


def nibabel_bytes(data: Any, affine: Any) -> bytes:
    import gzip

    out = io.BytesIO(nibabel.Nifti1Image(data, affine).to_bytes())
    return gzip.compress(out.getvalue())


@pytest.mark.parametrize("axes", AXES)
def test_turning_there_and_back_is_the_identity(axes: str) -> None:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(6, 7, 8))
    volume = nifti.Volume(data, np.diag([-2.5, 2.5, 2.5, 1.0]), "f4")
    way = grid.turn(volume, axes, 2.5)
    turned = way.forth(data)
    want = nibabel.orientations.apply_orientation(
        data,
        nibabel.orientations.ornt_transform(
            nibabel.orientations.axcodes2ornt("LAS"), nibabel.orientations.axcodes2ornt(tuple(axes))
        ),
    )
    assert np.allclose(turned, want, atol=1e-5)
    assert np.allclose(way.back(turned, data.shape), data, atol=1e-5)


def test_a_scaled_header_is_read_with_its_scale() -> None:
    image = nibabel.Nifti1Image(np.arange(8, dtype="i2").reshape(2, 2, 2), np.eye(4))
    image.header.set_slope_inter(2.0, -5.0)
    raw = bytearray(image.to_bytes())
    assert nifti.read(bytes(raw)).data.max() in (7, 9)


def test_windows_and_numbers() -> None:
    assert seg.numbers("-160 240") == [-160.0, 240.0] == seg.numbers([-160, 240])
    assert seg.numbers("none") == [] == seg.numbers("nan 1") == seg.numbers({"a": 1})
    assert (seg.windowed(np.array([-200.0, 40.0, 300.0]), "-160 240") == [0, 0.5, 1]).all()


def test_commands_can_be_repeated(helpers: Any, solve: Any) -> None:
    """Doing a step twice leaves what doing it once leaves."""
    task = helpers.tasks("classification", "recovery", "S4", seed=2)[0]
    acts = helpers.acts_of(helpers.DOMAIN.expert(task))
    twice = [one for step in acts[:-1] for one in (step, step)]
    assert solve(task, twice).runner.files() == solve(task, acts).runner.files()
