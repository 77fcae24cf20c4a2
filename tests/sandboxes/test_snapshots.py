"""The content store: addressed by content, verified when read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bat_core.errors import SnapshotMismatch
from bat_core.model.sandbox import SnapshotRef
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.sandboxes.tarball import encode
from bat_core.sandboxes.tree import Node


def test_files_go_in_and_come_out(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "new" / "store")
    ref = store.put_files({"a/b.txt": b"one", "c": b""})
    assert (ref.files, ref.bytes) == (2, 3)
    assert store.files(ref) == {"a/b.txt": b"one", "c": b""}
    assert SnapshotStore(tmp_path / "new" / "store").files(ref) == store.files(ref)


def test_the_same_tree_is_one_blob_whoever_wrote_it(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    one = store.put_files({"b": b"2", "a": b"1"})
    shuffled = [*encode({"b": Node("file", b"2")})[:-1], *encode({"a": Node("file", b"1")})]
    assert store.put_tar(b"".join(shuffled)) == one == store.put_files({"a": b"1", "b": b"2"})
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_the_executable_bit_and_odd_entries_are_kept(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    ref = store.put_tar(
        b"".join(encode({"run": Node("file", b"#!", True), "out": Node("link", b"/etc"), "pipe": Node("other")}))
    )
    assert store.odd(ref) == ("out", "pipe")
    assert store.files(ref) == {"run": b"#!"}
    assert ref.root != store.put_files({"run": b"#!"}).root
    assert store.put_files({"x": b""}, executable=["x"]).root != store.put_files({"x": b""}).root


def test_a_missing_blob_says_which_and_what_to_do(tmp_path: Path) -> None:
    ref = SnapshotRef(root="sha256:" + "0" * 64)
    with pytest.raises(SnapshotMismatch, match=r"0000\.tar is missing; restore that file"):
        SnapshotStore(tmp_path).tar(ref)
    assert not SnapshotStore(tmp_path).has(ref)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_a_damaged_blob_is_noticed_even_if_it_was_read_before(tmp_path: Path, damage: str) -> None:
    store = SnapshotStore(tmp_path)
    ref = store.put_files({"a": b"x" * 2000})
    path = store.path(ref.root)
    data = path.read_bytes()
    store.tar(ref)
    new = {
        "flip": data[:600] + b"!" + data[601:],
        "cut": data[:700],
        "empty": b"",
        "other": b"".join(encode({"b": Node("file", b"y")})),
    }
    path.write_bytes(new[damage])
    os.utime(path, ns=(1, 1))
    with pytest.raises(SnapshotMismatch, match=r"\.tar is damaged .*; restore that file"):
        store.tar(ref)
    assert store.put_files({"a": b"x" * 2000}) == ref, "putting it again mends it"
    assert store.files(ref) == {"a": b"x" * 2000}


def test_a_root_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(SnapshotMismatch, match="is no tree hash"):
        SnapshotStore(tmp_path).tar(SnapshotRef(root="sha256:../../etc/passwd"))


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../b", "d/" * 100 + "x"])
def test_files_with_impossible_paths_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="can't be a workspace"):
        SnapshotStore(tmp_path).put_files({path: b""})


def test_a_sandbox_that_seals_rubbish_is_told_off(tmp_path: Path) -> None:
    with pytest.raises(SnapshotMismatch, match="no workspace"):
        SnapshotStore(tmp_path).put_tar(b"rubbish" * 100)


def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bat_core.sandboxes.snapshots._CACHE_BYTES", 10_000)
    store = SnapshotStore(tmp_path)
    refs = [store.put_files({"a": bytes([number]) * 3000}) for number in range(6)]
    assert len(store._cache) == 2
    assert [store.files(ref)["a"][0] for ref in refs] == list(range(6))
