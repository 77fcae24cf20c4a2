"""The tree hash and the tar codec, against Python's own tar and against hostile archives."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tarfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bat_core.sandboxes.tarball import BadTar, decode, encode
from bat_core.sandboxes.tree import Node, hash_of_nodes

names = (
    st.binary(min_size=1, max_size=130)
    .filter(lambda raw: b"/" not in raw and b"\0" not in raw)
    .filter(lambda raw: raw not in (b".", b".."))
)
paths = st.lists(names, min_size=1, max_size=4).map(lambda parts: os.fsdecode(b"/".join(parts)))
leaves = st.one_of(
    st.builds(Node, st.just("file"), st.binary(max_size=1500), st.booleans()),
    st.builds(lambda target: Node("link", target.replace(b"\0", b"0")), st.binary(min_size=1, max_size=150)),
    st.just(Node("dir")),
    st.just(Node("other")),
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for path, node in draw(st.dictionaries(paths, leaves, max_size=8)).items():
        parents = [path[:at] for at, letter in enumerate(path) if letter == "/"]
        if path in nodes or any(nodes.get(parent, Node("dir")).kind != "dir" for parent in parents):
            continue
        nodes |= {parent: Node("dir") for parent in parents}
        nodes[path] = node
    return nodes


@settings(max_examples=60, deadline=None)
@given(trees())
def test_a_tree_comes_back_as_it_was_and_always_as_the_same_bytes(nodes: dict[str, Node]) -> None:
    tar = b"".join(encode(nodes))
    assert decode(tar) == nodes
    assert b"".join(encode(dict(reversed(nodes.items())))) == tar
    assert hash_of_nodes(decode(tar)) == hash_of_nodes(nodes)


@settings(max_examples=30, deadline=None)
@given(trees())
def test_pythons_own_tar_reads_the_same(nodes: dict[str, Node]) -> None:
    with tarfile.open(fileobj=io.BytesIO(b"".join(encode(nodes))), encoding="utf-8", errors="surrogateescape") as tar:
        members = {member.name: member for member in tar.getmembers()}
        assert set(members) == set(nodes)
        for path, node in nodes.items():
            stream = tar.extractfile(members[path]) if node.kind == "file" else None
            assert stream is None or stream.read() == node.data


@settings(max_examples=80, deadline=None)
@given(trees(), st.data())
def test_a_damaged_tar_is_refused_or_still_a_tree(nodes: dict[str, Node], data: st.DataObject) -> None:
    tar = bytearray(b"".join(encode(nodes)))
    at = data.draw(st.integers(0, len(tar) - 1))
    tar[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(BadTar):
        assert all(not path.startswith("/") and ".." not in path.split("/") for path in decode(tar))


def test_the_hash_is_what_the_documentation_says() -> None:
    nodes = {"b": Node("file", b"hi", True), "a": Node("dir"), "c": Node("link", b"b"), "d": Node("other")}
    lines = [
        b"dir 0 0 - a\0",
        b"file 1 2 " + hashlib.sha256(b"hi").hexdigest().encode() + b" b\0",
        b"link 0 1 " + hashlib.sha256(b"b").hexdigest().encode() + b" c\0",
        b"other 0 0 - d\0",
    ]
    assert hash_of_nodes(nodes) == "sha256:" + hashlib.sha256(b"".join(lines)).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"a": Node("file", b"other")},
        {"a": Node("file", b"one", True)},
        {"A": Node("file", b"one")},
        {"a": Node("link", b"one")},
        {"a": Node("file", b"one"), "b": Node("dir")},
        {},
    ],
)
def test_every_difference_that_counts_changes_the_hash(change: dict[str, Node]) -> None:
    assert hash_of_nodes(change) != hash_of_nodes({"a": Node("file", b"one")})


def _tar(format: int = tarfile.PAX_FORMAT, **members: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as tar:
        for name, fields in members.items():
            info = tarfile.TarInfo(fields.get("name", name))
            body = fields.get("body", b"")
            info.size = len(body)
            info.type, info.linkname = fields.get("type", tarfile.REGTYPE), fields.get("link", "")
            tar.addfile(info, io.BytesIO(body))
    return buffer.getvalue()


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_tars_made_elsewhere_are_read(format: int) -> None:
    long = "folder/" * 12 + "n" * 90
    nodes = decode(_tar(format, a={"name": "./" + long, "body": b"x"}, b={"name": "ä", "body": b"y"}))
    assert nodes[long].data == b"x" and nodes["ä"].data == b"y" and nodes["folder/folder"].kind == "dir"


@pytest.mark.parametrize(
    "members",
    [
        {"a": {"name": "../out", "body": b"x"}},
        {"a": {"name": "/etc/passwd", "body": b"x"}},
        {"a": {"name": "x/../../y", "body": b"x"}},
        {"a": {"type": tarfile.LNKTYPE, "link": "b"}},
        {"a": {"body": b"1"}, "b": {"name": "a", "body": b"2"}},
        {"a": {"type": tarfile.SYMTYPE, "link": "/etc"}, "b": {"name": "a/passwd", "body": b"x"}},
        {"a": {"name": "/".join(["d"] * 100), "body": b"x"}},
    ],
)
def test_hostile_tars_are_refused(members: dict[str, Any]) -> None:
    with pytest.raises(BadTar):
        decode(_tar(**members))


def test_a_tar_that_ends_early_is_refused() -> None:
    with pytest.raises(BadTar, match="cut short"):
        decode(b"".join(encode({"a": Node("file", b"x" * 5000)}))[:2000])
