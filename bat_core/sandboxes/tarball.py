"""A deterministic tar codec: the same tree gives the same bytes, and nothing hostile gets through.

Standard library only, and without `tarfile`, whose import and per-member cost would dominate a reset of a
small workspace. Written is GNU tar with all times and owners 0; read are ustar, GNU long names and pax paths.
Members other than files, folders and symbolic links become kind `other` and are written as fifos.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from bat_core.sandboxes.tree import Kind, Node

BLOCK = 512
MAX_DEPTH = 64
MAX_PATH = 3000
_ZEROS = bytes(BLOCK)
_TYPES: dict[Kind, bytes] = {"file": b"0", "link": b"2", "dir": b"5", "other": b"6"}
_KINDS: dict[bytes, Kind] = {b"0": "file", b"\0": "file", b"7": "file", b"2": "link", b"5": "dir"}
_OTHERS = frozenset((b"3", b"4", b"6"))


class BadTar(ValueError):
    """The bytes are not a tar that can be a workspace."""


def encode(nodes: Mapping[str, Node]) -> list[bytes]:
    """Return the chunks of the tar of `nodes`, sorted by path."""
    chunks: list[bytes] = []
    for name, node in sorted((os.fsencode(path), node) for path, node in nodes.items()):
        body = node.data if node.kind == "file" else b""
        target = node.data if node.kind == "link" else b""
        if len(target) > 100:
            chunks += [_header(b"././@LongLink", b"K", len(target) + 1), *_padded(target + b"\0")]
        if len(name) > 100:
            chunks += [_header(b"././@LongLink", b"L", len(name) + 1), *_padded(name + b"\0")]
        mode = 0o755 if node.kind == "dir" or node.executable else 0o644
        chunks += [_header(name[:100], _TYPES[node.kind], len(body), mode, target[:100]), *_padded(body)]
    chunks.append(bytes(2 * BLOCK))
    return chunks


def _header(name: bytes, kind: bytes, size: int, mode: int = 0o644, target: bytes = b"") -> bytes:
    """Return one 512-byte header with its checksum."""
    head = b"%s%07o\x000000000\x000000000\x00%011o\x0000000000000\x00" % (name.ljust(100, b"\0"), mode, size)
    tail = b"%s%sustar  \x00" % (kind, target.ljust(100, b"\0"))
    total = sum(head) + sum(tail) + 8 * 32
    return (head + b"%06o\x00 " % total + tail).ljust(BLOCK, b"\0")


def _padded(data: bytes) -> list[bytes]:
    rest = -len(data) % BLOCK
    return [part for part in (data, _ZEROS[:rest]) if part]


def decode(data: bytes | bytearray) -> dict[str, Node]:
    """Return the tree of a tar. Raises `BadTar` on escapes, doubles, hard links and damage."""
    nodes: dict[str, Node] = {}
    for raw, kind, body, executable in _members(memoryview(data)):
        path = _clean(raw)
        if not path:
            continue  # the root itself, as "./"
        if path in nodes and not (kind == "dir" and nodes[path].kind == "dir"):
            raise BadTar(f"tar holds {path!r} twice")
        nodes[path] = Node(kind, body, executable)
        _grow_parents(path, nodes)
    for path in nodes:
        parent = path.rpartition("/")[0]
        if parent and nodes[parent].kind != "dir":
            raise BadTar(f"tar holds {path!r} below something that is no folder")
    return nodes


def _members(view: memoryview) -> Iterator[tuple[bytes, Kind, bytes, bool]]:
    """Yield name, kind, content or link target, and executable bit of each member."""
    at = 0
    longs: dict[str, bytes] = {}
    while at + BLOCK <= len(view):
        head = bytes(view[at : at + BLOCK])
        if head == _ZEROS:
            return
        size = _number(head[124:136]) if "size" not in longs else int(longs["size"])
        kind = head[156:157]
        size = size if kind not in (b"1", b"2", b"3", b"4", b"5", b"6") else 0
        start, at = at + BLOCK, at + BLOCK + size + -size % BLOCK
        _check(head, view, start + size)
        if kind in (b"L", b"K", b"x", b"g"):
            longs |= _long(kind, bytes(view[start : start + size]))
            continue
        name, target = longs.get("path", _name(head)), longs.get("linkpath", head[157:257].split(b"\0")[0])
        longs = {}
        if kind in _OTHERS:
            yield name, "other", b"", False
        elif kind not in _KINDS:
            raise BadTar(f"tar holds a member of type {kind!r}, which a workspace can't")
        elif kind == b"2":
            yield name, "link", target, False
        else:
            body = bytes(view[start : start + size])
            yield name, _KINDS[kind], body, kind != b"5" and bool(_number(head[100:108]) & 0o100)


def _check(head: bytes, view: memoryview, end: int) -> None:
    """Refuse a damaged header or a body that reaches beyond the data."""
    total = sum(head) - sum(head[148:156]) + 8 * 32
    if _number(head[148:156]) != total:
        raise BadTar("tar header has a wrong checksum")
    if end > len(view):
        raise BadTar("tar is cut short")


def _number(field: bytes) -> int:
    text = field.strip(b" \0")
    if not text:
        return 0
    try:
        value = int(text, 8)
    except ValueError:
        raise BadTar("tar header holds a number that isn't octal") from None
    if value < 0:
        raise BadTar("tar header holds a negative number")
    return value


def _name(head: bytes) -> bytes:
    name = head[:100].split(b"\0")[0]
    prefix = head[345:500].split(b"\0")[0] if head[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _long(kind: bytes, body: bytes) -> dict[str, bytes]:
    """Return the fields that a long-name or pax member gives to the member after it."""
    if kind == b"L":
        return {"path": body.split(b"\0")[0]}
    if kind == b"K":
        return {"linkpath": body.split(b"\0")[0]}
    found: dict[str, bytes] = {}
    while body and kind == b"x":
        length, _, rest = body.partition(b" ")
        if not length.isdigit() or not len(length) < int(length) <= len(body):
            raise BadTar("tar holds a damaged pax record")
        key, _, value = rest[: int(length) - len(length) - 2].partition(b"=")
        if key in (b"path", b"linkpath", b"size"):
            found[key.decode()] = value
        if key.startswith(b"GNU.sparse"):
            raise BadTar("tar holds a sparse member")
        body = body[int(length) :]
    if not found.get("size", b"0").isdigit():
        raise BadTar("tar holds a damaged pax size")
    return found


def _clean(raw: bytes) -> str:
    """Return the relative path that `raw` means. Raises `BadTar` when it leads out or is absurd."""
    if raw.startswith(b"/") or b"\0" in raw or len(raw) > MAX_PATH:
        raise BadTar(f"tar holds the path {raw[:80]!r}")
    parts = [part for part in raw.split(b"/") if part not in (b"", b".")]
    if b".." in parts or len(parts) > MAX_DEPTH or any(len(part) > 255 for part in parts):
        raise BadTar(f"tar holds the path {raw[:80]!r}")
    return os.fsdecode(b"/".join(parts))


def _grow_parents(path: str, nodes: dict[str, Node]) -> None:
    parent = path.rpartition("/")[0]
    while parent and parent not in nodes:
        nodes[parent] = Node("dir")
        parent = parent.rpartition("/")[0]
