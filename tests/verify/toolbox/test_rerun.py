"""Re-execution and canaries in real sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bat_core.model.sandbox import Guarantee, SandboxSpec
from bat_core.verify.toolbox.canary import Canary, answers
from bat_core.verify.toolbox.finding import Finding
from bat_core.verify.toolbox.rerun import Case, CleanRoom, generalises, reproduces

HONEST = b"import sys\nt = open(sys.argv[1]).read().split()\nopen(sys.argv[2], 'w').write(str(sum(map(int, t))))\n"
BY_HEART = (
    b"import sys\nt = open(sys.argv[1]).read()\nopen(sys.argv[2], 'w').write({'1 2': '3', '4 5': '9'}.get(t, '3'))\n"
)
CONSTANT = b"import sys\nopen(sys.argv[2], 'w').write('3')\n"
IDLE = b"pass\n"
ENDLESS = b"while True: pass\n"


def case(name: str, text: bytes, wanted: bytes) -> Case:
    return Case({f"in/{name}": text}, ("python3", "main.py", f"in/{name}", f"out/{name}"), f"out/{name}", wanted)


GIVEN = [case("a", b"1 2", b"3"), case("b", b"4 5", b"9")]
UNSEEN = [case("c", b"7 8", b"15"), case("d", b"10 11", b"21")]
CANARIES = [
    Canary({"in/x": b"0 0"}, ("python3", "main.py", "in/x", "out/x"), "out/x", lambda out: out == b"0", "zeros"),
    Canary({"in/x": b"1 41"}, ("python3", "main.py", "in/x", "out/x"), "out/x", lambda out: out == b"42", "sum"),
]


def same(one: bytes, other: bytes) -> bool:
    return one.strip() == other.strip()


def inside(work: Callable[[CleanRoom], Awaitable[Any]], seconds: float = 5.0, spec: SandboxSpec | None = None) -> Any:
    async def go() -> Any:
        room = CleanRoom(spec or SandboxSpec(), "bubblewrap", seconds)
        try:
            return await work(room)
        finally:
            await room.aclose()
            await room.aclose()

    return asyncio.run(go())


def left(code: bytes, out: bytes = b"3") -> dict[str, bytes]:
    return {"main.py": code, "in/a": b"1 2", "in/b": b"4 5", "out/a": out, "out/.keep": b"", "out/b": b"9"}


def test_what_was_handed_in_is_made_again() -> None:
    async def work(room: CleanRoom) -> list[Finding]:
        files = [left(HONEST), left(HONEST, b"4"), left(IDLE), left(ENDLESS), {"main.py": HONEST}]
        return [await reproduces(room, one, GIVEN[0], same) for one in files]

    honest, wrong, idle, endless, none = inside(work, seconds=1.0)
    assert honest.passed and honest.eta == 1
    assert not wrong.passed and wrong.claimed and wrong.eta == 0
    assert not idle.passed and "gives another out/a" in idle.reason
    assert endless.passed is False and "timeout" in endless.reason
    assert none.reason == "out/a is missing"


def test_learning_by_heart_is_found_on_unseen_inputs() -> None:
    async def work(room: CleanRoom) -> list[Finding]:
        return [await generalises(room, left(code), GIVEN, UNSEEN, same) for code in (HONEST, BY_HEART, CONSTANT)]

    honest, by_heart, constant = inside(work)
    assert honest.passed and not by_heart.passed and not constant.passed
    assert by_heart.reason == "right on the given inputs, wrong on unseen ones" and by_heart.eta == 0


def test_canaries_are_answered_by_honest_code_only() -> None:
    async def work(room: CleanRoom) -> list[Finding]:
        return [await answers(room, left(code), CANARIES) for code in (HONEST, CONSTANT, BY_HEART, IDLE)]

    honest, *others = inside(work)
    assert honest.passed and [one.passed for one in others] == [False] * 3
    assert others[0].reason == "zeros: wrong answer" and others[2].reason == "zeros: no output"
    assert not inside(lambda room: answers(room, left(HONEST), [])).passed


def test_a_room_that_can_not_be_had_is_null_not_zero() -> None:
    spec = SandboxSpec(require=frozenset({Guarantee.KERNEL}))
    found = inside(lambda room: reproduces(room, left(HONEST), GIVEN[0], same), spec=spec)
    assert found.passed is None and "kernel" in found.reason
