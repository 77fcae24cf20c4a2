"""Whether a shell command counts: only a plain call of an allowed program with allowed arguments does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bat_core.verify.toolbox.ledger import Event

SHELL = re.compile(r"[|&;<>`$(){}\n\r\\*?~!#]")
"""Characters by which a command is more than one call: pipes, lists, redirections, expansions, comments."""
ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
CRASH = re.compile(r"traceback \(most recent", re.I)
TROUBLE = re.compile(r"traceback \(most recent|error:|exception:|segmentation fault|command not found", re.I)
TRUNCATED = re.compile(r"\[(?:output )?truncated[^\]]*\]|\.\.\. ?\[\d+ (?:bytes|characters) (?:cut|omitted)\]", re.I)
LOADERS = re.compile(
    r"(?:^|[\s;&])(?:alias\s+\w+=|hash\s+-p|function\s+\w+[\s()]*\{|\w+\s*\(\)\s*\{"
    r"|(?:export\s+|declare\s+-x\s+)?(?:PATH|PYTHON(?:PATH|HOME|STARTUP|INSPECT)|LD_\w+|BASH_ENV)=)"
)


@dataclass(frozen=True)
class Allowed:
    """A program that counts.

    Attributes:
        words: The words that it must begin with, such as `("python", "smoke.py")`.
        options: Allowed options and the values that they may have; a trailing `*` in a value is a prefix.
        least: Options that must be there.
    """

    words: tuple[str, ...]
    options: Mapping[str, Sequence[str]]
    least: tuple[str, ...] = ()


def plain(code: str) -> list[str] | None:
    """Return the words of a single, undecorated command; None for anything else.

    Quoted text is an argument and may hold anything.
    """
    bare = re.sub(r"'[^']*'|\"(?:[^\"\\$`]|\\.)*\"", "q", code.strip())
    if SHELL.search(bare) or not bare:
        return None
    try:
        words = shlex.split(code)
    except ValueError:
        return None
    return None if not words or ASSIGNMENT.match(words[0]) else words


def options_of(code: str, allowed: Allowed) -> dict[str, str] | None:
    """Return the options of a plain call of `allowed`; None if it is none."""
    words = plain(code)
    if words is None or tuple(_known(words)[: len(allowed.words)]) != allowed.words:
        return None
    found: dict[str, str] = {}
    rest = words[len(allowed.words) :]
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in allowed.options or name in found:
            return None
        values = allowed.options[name]
        if values and not equals:
            if not rest:
                return None
            value = rest.pop(0)
        if bool(values) != bool(value) or (values and not any(_fits(value, one) for one in values)):
            return None
        found[name] = value
    return found if all(name in found for name in allowed.least) else None


def counts(event: Event, allowed: Allowed) -> dict[str, str] | None:
    """Return the options if the event is a call that counts: plain, exit 0, no sign of trouble."""
    if not event.ok or TROUBLE.search(event.stderr) or CRASH.search(event.stdout):
        return None
    return options_of(event.code, allowed)


def truncated(event: Event) -> bool:
    """Return whether the log of the event is cut."""
    return bool(TRUNCATED.search(event.stdout))


def tampered(events: Iterable[Event], before: Event, names: Iterable[str], shadows: Iterable[str] = ()) -> str:
    """Return what an earlier call did that makes a later call of a tool worthless; empty if nothing.

    Args:
        events: The ledger.
        before: The call in question.
        names: Files of the tool, workspace-relative: nobody may have written them.
        shadows: Names of modules or programs that the tool uses: nobody may have put others in their place.
    """
    files, hidden = set(names), set(shadows)
    for event in events:
        if event.seq > before.seq:
            break
        if LOADERS.search(event.code):
            return f"call {event.seq} changes what a name stands for"
        for path in sorted(event.wrote or ()):
            if path in files:
                return f"call {event.seq} wrote {path}"
            if _shadow(path, hidden):
                return f"call {event.seq} wrote {path}, which takes the place of another"
    return ""


STARTUP = ("sitecustomize.py", "usercustomize.py", ".bashrc", ".bash_profile", ".profile", ".pythonrc", "pyvenv.cfg")


def _shadow(path: str, hidden: set[str]) -> bool:
    name = path.rsplit("/", 1)[-1]
    if name in STARTUP or name.endswith((".pth", ".so")):
        return True
    stem = name.removesuffix(".py").removesuffix(".pyc")
    return (stem in hidden or path.split("/", 1)[0] in hidden) and (name == stem or name != path or "." in name)


def _known(words: Sequence[str]) -> list[str]:
    """Return words with usual spellings of the same thing made one."""
    head = "python" if re.fullmatch(r"(?:/usr/bin/|/usr/local/bin/)?python3?(?:\.\d+)?", words[0]) else words[0]
    return [head, *(word.removeprefix("./") for word in words[1:])]


def _fits(value: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return value.startswith(pattern[:-1]) and ".." not in value
    return value.removeprefix("./").rstrip("/") == pattern.rstrip("/")
