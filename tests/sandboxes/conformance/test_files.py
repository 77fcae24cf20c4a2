"""Reading, writing, listing, sealing and resetting a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from bat_core.errors import OutputLimit, SnapshotMismatch
from bat_core.hooks.sandbox import Sandbox

Inside = Callable[..., Any]
CONTENTS = {
    "text.txt": "grüße\n".encode(),
    "binary": bytes(range(256)) * 10,
    "empty": b"",
    "deep/er/still.txt": b"x",
    "with space and 'quote'": b"1",
    "-rf": b"2",
    "new\nline": b"3",
    "ünï": b"4",
    os.fsdecode(b"not-utf8-\xff"): b"5",
    "large": os.urandom(3 << 20),
}


def test_what_is_written_is_read_listed_and_collected(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        for path, data in CONTENTS.items():
            await box.write(path, data)
        for path, data in CONTENTS.items():
            assert await box.read(path) == data
        assert await box.read("/workspace/text.txt") == CONTENTS["text.txt"]
        assert dict(await box.collect()) == CONTENTS
        entries = {entry.path: entry for entry in await box.list()}
        assert set(entries) == {*CONTENTS, "deep", "deep/er"}
        assert entries["large"].size == 3 << 20 and entries["deep"].kind == "dir"
        assert [entry.path for entry in await box.list()] == sorted(entries, key=os.fsencode)

    inside(body)


def test_commands_see_files_and_files_show_commands_work(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        await box.write("run.sh", b"#!/bin/sh\ncat in.txt > out.txt\n", executable=True)
        await box.write("in.txt", b"hello")
        assert (await box.exec(["./run.sh"])).rc == 0
        assert await box.read("out.txt") == b"hello"
        await box.write("run.sh", b"#!/bin/sh\n")
        assert (await box.exec(["./run.sh"])).rc == 126, "rewritten without the executable bit"

    inside(body)


@pytest.mark.parametrize(
    "path", ["missing", "no/where", ".", "", "../x", "a/../../x", "/etc/hostname", "folder", "a\0b", "\ud800"]
)
def test_what_is_no_file_of_the_workspace_is_not_found(inside: Inside, path: str) -> None:
    async def body(box: Sandbox) -> None:
        await box.write("folder/x", b"")
        with pytest.raises((FileNotFoundError, IsADirectoryError)):
            await box.read(path)

    inside(body)


def test_links_and_fifos_are_listed_but_never_followed(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        made = "ln -s /etc/passwd out; ln -s /etc etc; mkfifo pipe; ln -s nothing broken; echo 1 > real; ln real hard"
        assert (await box.exec(["sh", "-c", made])).rc == 0
        kinds = {entry.path: entry.kind for entry in await box.list()}
        assert kinds == {
            "out": "link",
            "etc": "link",
            "pipe": "other",
            "broken": "link",
            "real": "file",
            "hard": "file",
        }
        assert dict(await box.collect()) == {"real": b"1\n", "hard": b"1\n"}
        for path in ("out", "pipe", "broken", "etc/passwd"):
            with pytest.raises((FileNotFoundError, NotADirectoryError)):
                await box.read(path)
        with pytest.raises(NotADirectoryError):
            await box.write("etc/bat", b"")
        await box.write("out", b"mine")
        assert await box.read("out") == b"mine", "a link is replaced, not followed"
        await box.write("pipe", b"now a file")
        with pytest.raises(IsADirectoryError):
            await box.exec(["mkdir", "folder"])
            await box.write("folder", b"")

    inside(body)


def test_reads_are_limited(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        await box.write("a", b"x" * 2000)
        assert await box.read("a", max_bytes=2000) == b"x" * 2000
        for read in (box.read("a", max_bytes=1999), box.read("b"), box.collect()):
            await box.exec(["truncate", "-s", "5M", "b"])
            with pytest.raises(OutputLimit, match=r"limit.*; raise"):
                await read
        assert (await box.exec(["true"])).rc == 0, "the sandbox goes on"

    inside(body, limits={"read": 4000})


def test_a_seal_survives_and_a_reset_is_exact(inside: Any) -> None:
    async def body(box: Sandbox) -> None:
        await box.exec(
            ["sh", "-c", "mkdir -p d/empty; echo 1 > d/one; chmod +x d/one; ln -s one d/link; mkfifo d/pipe"]
        )
        ref = await box.snapshot()
        assert (ref.files, ref.bytes) == (1, 2)
        again = await box.exec(["sh", "-c", "touch -d 1999-01-01 d/one; chmod 600 d/one; chmod 700 d/one"])
        assert again.ws_before == again.ws_after == ref.root, "times and other modes don't count"
        mess = "rm -r d; mkdir -p a/b/c; echo x > a/b/c/x; chmod 000 a/b; echo y > y; chmod 000 y; touch .hidden"
        after = await box.exec(["sh", "-c", mess])
        assert after.rc == 0 and after.ws_before == ref.root != after.ws_after
        await box.restore(ref)
        assert {entry.path: entry.kind for entry in await box.list()} == {
            "d": "dir", "d/empty": "dir", "d/one": "file", "d/link": "link", "d/pipe": "other",
        }  # fmt: skip
        assert (await box.exec(["d/one"])).rc in (126, 127, 1), "executable, if no program"
        assert await box.snapshot() == ref
        assert inside.store.odd(ref) == ("d/link", "d/pipe")

    inside(body)


def test_deep_and_unreadable_folders_are_wiped(inside: Any) -> None:
    async def body(box: Sandbox) -> None:
        ref = inside.store.put_files({"a": b"1"})
        dig = (
            "import os\nfor i in range(700):\n os.mkdir('d' * 40); os.chdir('d' * 40)\nopen('x', 'w'); os.chmod('.', 0)"
        )
        dug = await box.exec(["python3", "-c", dig])
        assert dug.rc == 0 and dug.ws_after == "", "too deep to be hashed: said, not guessed"
        with pytest.raises(OutputLimit, match="nested too deeply"):
            await box.snapshot()
        await box.restore(ref)
        assert dict(await box.collect()) == {"a": b"1"}

    inside(body)


def test_a_sparse_giant_is_refused_not_hashed(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.exec(["sh", "-c", "for i in 1 2 3 4 5; do truncate -s 30M f$i; done"])
        assert result.rc == 0 and result.ws_after == ""
        with pytest.raises(OutputLimit):
            await box.snapshot()

    inside(body)


def test_mapped_writes_are_seen(inside: Inside) -> None:
    """A page that is mapped and read before it's written leaves no trace in the file's times."""

    async def body(box: Sandbox) -> None:
        await box.write("m", b"a" * 8192)
        code = "import mmap\nwith open('m', 'r+b') as f:\n m = mmap.mmap(f.fileno(), 0)\n x = m[0]\n m[:4] = b'ZZZZ'\n"
        result = await box.python(code)
        assert result.rc == 0 and result.ws_before != result.ws_after

    inside(body)


def test_a_snapshot_too_large_for_the_disk_is_a_mismatch_with_a_remedy(isolated: Any) -> None:
    async def body(box: Sandbox) -> None:
        big = isolated.store.put_files({"a": bytes(5 << 20)})
        with pytest.raises(SnapshotMismatch, match=r"raise SandboxSpec\.limits\.disk"):
            await box.restore(big)
        await box.restore(isolated.store.put_files({"b": b"1"}))
        assert dict(await box.collect()) == {"b": b"1"}

    isolated(body, limits={"disk": 2 << 20})


def test_reset_empties_scratch_folders_too(isolated: Any) -> None:
    async def body(box: Sandbox) -> None:
        await box.exec(["sh", "-c", "echo 1 > /tmp/x; mkdir /tmp/d; echo 1 > /dev/shm/y; setsid sleep 60 &"])
        await box.restore(isolated.store.put_files({}))
        left = await box.exec(["sh", "-c", "ls -A /tmp /dev/shm /workspace; ls /proc | grep -c '^[0-9]'"])
        assert left.stdout.split() == [b"/dev/shm:", b"/tmp:", b"/workspace:", left.stdout.split()[-1]]
        assert int(left.stdout.split()[-1]) <= 4

    isolated(body)


def test_ten_thousand_files_and_a_huge_one_are_reported_and_harm_nothing(isolated: Any) -> None:
    async def body(box: Sandbox) -> None:
        many = "import os\nos.mkdir('m')\nfor n in range(10_000): open(f'm/{n}', 'w').write('x')\n"
        assert (await box.python(many)).rc == 0
        assert len(await box.collect()) == 10_000 and (await box.snapshot()).files == 10_000
        await box.restore(isolated.store.put_files({}))
        assert (
            await box.exec(["sh", "-c", "head -c 200000000 /dev/zero > huge; echo > a; ln a hard; ln -s huge l"])
        ).rc == 0
        assert {entry.path: (entry.kind, entry.size) for entry in await box.list()} == {
            "a": ("file", 1), "hard": ("file", 1), "huge": ("file", 200_000_000), "l": ("link", 4),
        }  # fmt: skip
        for refused in (box.read("huge"), box.collect()):
            with pytest.raises(OutputLimit, match=r"has 200000000 bytes|have 200000002 bytes"):
                await refused
        assert (await box.exec(["rm", "huge"])).rc == 0
        assert dict(await box.collect()) == {"a": b"\n", "hard": b"\n"}

    isolated(body, limits={"disk": 256 << 20})
