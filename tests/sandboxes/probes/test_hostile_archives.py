"""Archives made to hurt whoever unpacks them: refused whole, or unpacked into nothing but harmless files."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import SnapshotMismatch
from bat_core.sandboxes.inside.workspace import Workspace
from bat_core.sandboxes.snapshots import SnapshotStore
from bat_core.sandboxes.tarball import BadTar, decode, encode
from bat_core.sandboxes.tree import Node

FILE, LINK, HARD = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
CHAR, FIFO, FOLDER = tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE
Member = tuple[str, bytes, Any]
CASES: dict[str, list[Member]] = {
    "dotdot": [("w/../../victim/x", FILE, b"e")],
    "absolute": [("{top}/victim/x", FILE, b"e")],
    "link, then a file through it": [("w/l", LINK, "../../victim"), ("w/l/x", FILE, b"e")],
    "absolute link, then a file through it": [("w/l", LINK, "{top}/victim"), ("w/l/x", FILE, b"e")],
    "chain of links": [
        ("w/a", LINK, "."), ("w/a/b", LINK, ".."), ("w/a/b/c", LINK, ".."), ("w/c/victim/x", FILE, b"e"),
        ("w/b/../../victim/x", FILE, b"e"),
    ],
    "hard link out": [("w/h", HARD, "../../secret")],
    "absolute hard link": [("w/h", HARD, "{top}/secret")],
    "overwrite through a hard link": [("w/h", HARD, "{top}/secret"), ("w/h", FILE, b"PWNED!")],
    "link to read through": [("w/s", LINK, "{top}/secret")],
    "device": [("w/c", CHAR, None)],
    "fifo": [("w/f", FIFO, None)],
    "setuid": [("w/su", FILE, b"#!")],
    "twice": [("w/a", FILE, b"1"), ("w/a", FILE, b"2")],
    "folder, then a link": [("w/d", FOLDER, None), ("w/d", LINK, "{top}/victim"), ("w/d/x", FILE, b"e")],
    "bad utf-8": [(b"w/caf\xe9".decode("utf8", "surrogateescape"), FILE, b"x")],
    "newline": [("w/a\nb", FILE, b"x")],
    "no name": [("", FILE, b"x")],
}  # fmt: skip
KEPT = {"link to read through", "device", "fifo", "setuid", "bad utf-8", "newline", "no name"}


def archive(members: list[Member], top: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", errors="surrogateescape") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name.replace("{top}", str(top)))
            info.type, info.mode, info.devmajor, info.devminor = kind, 0o6755, 1, 8
            if kind in (LINK, HARD):
                info.linkname = content.replace("{top}", str(top))
            if kind == FILE:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if kind == FILE else None)
    return buffer.getvalue()


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_archive_harms_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "secret").write_text("SECRET")
    target = tmp_path / "out" / "workspace"
    target.mkdir(parents=True)
    data = archive(CASES[name], tmp_path)
    if name in KEPT:
        Workspace(str(target), 1 << 20, 100).fill(decode(data))
    else:
        with pytest.raises(BadTar):
            decode(data)
        with pytest.raises(SnapshotMismatch, match="discard that sandbox"):
            SnapshotStore(tmp_path / "store").put_tar(data)
    assert not list((tmp_path / "victim").iterdir()) and (tmp_path / "secret").read_text() == "SECRET"
    for folder, folders, files in os.walk(target):
        for entry in [Path(folder) / one for one in [*folders, *files]]:
            mode = entry.lstat().st_mode
            assert not mode & 0o7000 and not stat.S_ISCHR(mode) and not stat.S_ISBLK(mode)
            assert entry.lstat().st_nlink == 1 or stat.S_ISDIR(mode)


def test_what_a_seal_holds_of_links_is_never_read_through(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET")
    store = SnapshotStore(tmp_path / "store")
    ref = store.put_tar(archive(CASES["link to read through"], tmp_path))
    assert store.files(ref) == {} and store.odd(ref) == ("w/s",)


def test_a_member_that_claims_a_terabyte_is_refused_at_once() -> None:
    whole = b"".join(encode({"big": Node("file", b"x" * 512)}))
    head = bytearray(whole[:512])
    head[124:136] = b"%011o\0" % (1 << 33)
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    began = time.monotonic()
    with pytest.raises(BadTar, match="cut short"):
        decode(bytes(head) + whole[512:])
    assert time.monotonic() - began < 1


def test_sixty_thousand_members_are_read_in_bounded_time() -> None:
    whole = b"".join(encode({f"f{number}": Node("file") for number in range(60_000)}))
    began = time.monotonic()
    assert len(decode(whole)) == 60_000 and time.monotonic() - began < 20
