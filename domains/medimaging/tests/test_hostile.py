"""Whatever bytes a rollout leaves behind, checks answer, fast, and never with an exception."""

from __future__ import annotations

import dataclasses
import gzip
import json
import struct
import time
from random import Random
from typing import Any

import numpy as np
import pytest
from bat_medimaging.toolbelt.phx import cls, nifti

from bat_core.model.receipt import Receipt

HUGE = "9" * 4000


def header(**fields: Any) -> bytes:
    """A NIfTI file whose header lies."""
    raw = bytearray(gzip.decompress(nifti.write(np.zeros((3, 3, 3), "u1"), np.eye(4))))
    struct.pack_into("<8h", raw, 40, *fields.get("dim", (3, 3, 3, 3, 1, 1, 1, 1)))
    struct.pack_into("<h", raw, 70, fields.get("code", 2))
    struct.pack_into("<fff", raw, 108, fields.get("offset", 352.0), fields.get("slope", 1.0), 0.0)
    struct.pack_into("<f", raw, 280, fields.get("affine", 1.0))
    return gzip.compress(bytes(raw))


BYTES = {
    "empty": b"",
    "noise": bytes(range(256)) * 40,
    "bad gzip": b"\x1f\x8b\x08" + b"\0" * 40,
    "half gzip": gzip.compress(b"a" * 4000)[:20],
    "bomb": gzip.compress(b"\0" * (64 << 20)),
    "huge shape": header(dim=(3, 32767, 32767, 32767, 1, 1, 1, 1)),
    "negative shape": header(dim=(3, -3, 3, 3, 1, 1, 1, 1)),
    "unknown dtype": header(code=1536),
    "far offset": header(offset=1e30),
    "nan slope": header(slope=float("nan")),
    "nan affine": header(affine=float("nan")),
    "nan json": b'{"model": NaN, "weights": Infinity, "conf": NaN, "mean": [NaN, 1e999], "done": NaN}',
    "huge numbers": f'{{"probe": {HUGE}, "conf": {HUGE}, "done": {HUGE}, "spacing": {HUGE}, "label": {HUGE}}}'.encode(),
    "deep json": b'{"a":' * 900 + b"1" + b"}" * 900,
    "json list": b"[[1],[2]]",
    "wrong types": json.dumps(
        {"model": ["a"], "weights": {"x": 1}, "axes": 7, "spacing": [1, "b"], "window": {"a": 1}, "labels": None,
         "channels": [], "scale": "x", "sha256": 4, "probe": "1", "done": "all", "failed": [], "conf": "high",
         "label": {}, "mean": "m", "case": 3, "task": None}
    ).encode(),
    "binary csv": b"case,label\n\xff\xfe,\x00\n" * 600,
    "formula csv": "case,label\n=cmd(),x\n\u202eamber,fenn,,,\n".encode(),
    "long line": b"model: " + b"a " * 30000,
}  # fmt: skip

PATHS = (
    "plan/plan.md", "setup/environment.json", "pipeline/config.json", "pipeline/weights.json",
    "validation/pilot/{case}/dseg.nii.gz", "validation/pilot/{case}/prediction.json", "outputs/{case}/dseg.nii.gz",
    "outputs/predictions.csv", "outputs/failed_cases.json", "outputs/submission.json",
)  # fmt: skip


@pytest.mark.parametrize("kind", sorted(BYTES))
def test_hostile_files_get_verdicts(helpers: Any, runs: Any, kind: str) -> None:
    for run in (runs[0], runs[11]):
        case = json.loads(run.start["data/task.json"])["cases"][0]
        for path in PATHS:
            place = path.format(case=case)
            files = {**run.evidence.files, place: BYTES[kind]}
            begin = time.process_time()
            verdicts = helpers.judge(dataclasses.replace(run.evidence, files=files))
            assert time.process_time() - begin < 1.0
            assert all(isinstance(verdict.passed, bool) for verdict in verdicts.values())
            assert all(len(verdict.reason) < 400 for verdict in verdicts.values())
        everywhere = {path.format(case=case): BYTES[kind] for path in PATHS}
        verdicts = helpers.judge(dataclasses.replace(run.evidence, files={**run.evidence.files, **everywhere}))
        assert not verdicts["S5.b"].passed and not verdicts["S3.d"].passed
        assert helpers.CONTRACT.task_score(run.task, {**run.evidence.files, **everywhere}) < 0.9


@pytest.mark.parametrize("kind", sorted(BYTES))
def test_readers_raise_nothing_but_unreadable(kind: str) -> None:
    for reader in (nifti.read, cls.decode):
        try:
            reader(BYTES[kind])
        except nifti.Unreadable as error:
            assert len(str(error).split()) == 1


def test_flipped_bytes_raise_nothing_but_unreadable(runs: Any) -> None:
    rng = Random(0)
    good = next(data for path, data in runs[0].start.items() if path.endswith("ct.nii.gz"))
    raw = gzip.decompress(good)
    for _ in range(300):
        broken = bytearray(raw)
        for _ in range(rng.randrange(1, 6)):
            broken[rng.randrange(352)] = rng.randrange(256)
        try:
            nifti.read(bytes(broken))
        except nifti.Unreadable:
            continue


def test_hostile_receipts_get_verdicts(helpers: Any, runs: Any) -> None:
    texts = ["", "\0" * 9000, "1 " * 200_000, "e" * 100_000, "-" * 50_000, "1e999 " * 20, HUGE, "\ud800"]
    base = runs[0].evidence.receipts[0]
    receipts = [
        Receipt(**{**base.model_dump(), "code": code, "stdout": out}) for code in texts[:-1] for out in texts[:-1]
    ]
    begin = time.process_time()
    verdicts = helpers.judge(dataclasses.replace(runs[0].evidence, receipts=tuple(receipts), final=HUGE))
    assert all(isinstance(verdict.passed, bool) for verdict in verdicts.values())
    assert time.process_time() - begin < 5
