"""The warm interpreter: like a fresh one, but knowing its modules already."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bat_core.errors import SandboxUnavailable
from bat_core.hooks.sandbox import Sandbox
from bat_core.sandboxes.bundle import agent_program
from bat_core.sandboxes.provider import AgentProvider

Inside = Callable[..., Any]


def test_modules_are_bound_like_in_a_notebook(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.python("print(numpy.arange(3).sum(), scipy.ndimage.label([[1, 0, 1]])[1], __name__)")
        assert result.stdout == b"3 2 __main__\n", result.stderr

    inside(body, preload=("numpy", "scipy.ndimage"))


def test_nothing_leaks_from_call_to_call(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        first = await box.python(
            "import json, os, sys, builtins\nx = 1\njson.dumps = None\nnumpy.evil = 1\nbuiltins.y = 2\n"
            "os.environ['LEFT'] = '1'\nos.chdir('/')\nsys.path.insert(0, '/nowhere')\nos.umask(0)\nsys.stdout.flush()"
        )
        assert first.rc == 0, first.stderr
        second = await box.python(
            "import json, os, sys, builtins\nprint('x' in globals(), json.dumps([1]), hasattr(numpy, 'evil'), "
            "hasattr(builtins, 'y'), os.environ.get('LEFT'), os.path.basename(os.getcwd()), '/nowhere' in sys.path)"
        )
        assert second.stdout == b"False [1] False False None workspace False\n"
        open_mode = await box.python("import os\nopen('f', 'w')\nprint(oct(os.stat('f').st_mode))")
        assert open_mode.stdout == b"0o100644\n"

    inside(body, preload=("numpy",))


@pytest.mark.parametrize(
    ("code", "rc", "out", "err"),
    [
        ("print('a')", 0, b"a\n", b""),
        ("import sys; sys.stdout.write('no newline')", 0, b"no newline", b""),
        ("import sys; sys.exit()", 0, b"", b""),
        ("import sys; sys.exit(3)", 3, b"", b""),
        ("raise SystemExit('sorry')", 1, b"", b"sorry\n"),
        ("import os; os._exit(9)", 9, b"", b""),
        ("import sys; sys.stdin.read(); print('end')", 0, b"end\n", b""),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00'); print('\\udcff')", 0, b"\xff\x00\xff\n", b""),
        ("import atexit; atexit.register(print, 'bye')", 0, b"bye\n", b""),
        ("import threading as t, time\nt.Thread(target=lambda: (time.sleep(.1), print('t'))).start()", 0, b"t\n", b""),
        ("import sys; print(sys.argv, __builtins__ is not None)", 0, b"['<python>'] True\n", b""),
        ("def f(): return g()\ndef g(): return 4\nprint(f(), [g() for _ in 'a'])", 0, b"4 [4]\n", b""),
        ("import sys; sys.stdout.close()", 0, b"", b""),
    ],
)  # fmt: skip
def test_it_behaves_as_an_interpreter(inside: Inside, code: str, rc: int, out: bytes, err: bytes) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.python(code)
        assert (result.rc, result.stdout, result.stderr) == (rc, out, err)

    inside(body)


def test_errors_show_the_programs_own_lines_only(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.python("def f():\n    return 1 / 0\nf()\n")
        text = result.stderr.decode()
        assert result.rc == 1 and text.endswith("ZeroDivisionError: division by zero\n")
        assert 'File "<python>", line 2, in f\n    return 1 / 0' in text and "sandboxes" not in text
        syntax = await box.python("x = = 1")
        assert syntax.rc == 1 and b"SyntaxError" in syntax.stderr and b"sandboxes" not in syntax.stderr
        assert (await box.python("raise KeyboardInterrupt")).rc == 1
        for impossible in ("x = '\0'", "x = '\ud800'"):
            assert (await box.python(impossible)).rc == 1

    inside(body)


def test_the_workspace_can_be_imported_but_shadows_nothing(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        await box.write("mine.py", b"VALUE = 5\n")
        for name in ("json", "numpy", "fractions", "sitecustomize", "usercustomize"):
            await box.write(f"{name}.py", b"raise SystemExit('planted')\n")
        result = await box.python("import mine, json, numpy, fractions; print(mine.VALUE, fractions.Fraction(1, 2))")
        assert (result.rc, result.stdout) == (0, b"5 1/2\n"), result.stderr
        assert result.ws_before == result.ws_after, "no byte code is left behind"

    inside(body, preload=("numpy",))


def test_calls_depend_on_their_source_alone(inside: Inside) -> None:
    code = "import random; print(hash('a'), random.random(), numpy.random.rand())"

    async def body(box: Sandbox) -> bytes:
        first = (await box.python(code)).stdout
        assert first.count(b" ") == 2 and (await box.python(code)).stdout == first
        return first

    assert inside(body, preload=("numpy",)) == inside(body, preload=("numpy", "json")), "in any sandbox"


def test_source_is_unlimited_by_command_lines_and_never_stays(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        result = await box.python(f"x = '{'y' * 3_000_000}'\nprint(len(x), 'ä')")
        assert result.stdout.decode() == "3000000 ä\n"
        assert b"yyyy" not in (await box.exec(["sh", "-c", "cat /proc/1/cmdline /proc/self/environ"])).stdout

    inside(body)


def test_subprocesses_work_from_it(inside: Inside) -> None:
    async def body(box: Sandbox) -> None:
        code = (
            "import subprocess, multiprocessing as m\nprint(subprocess.run(['echo', 'hi'], capture_output=True).stdout)"
        )
        assert (await box.python(code)).stdout == b"b'hi\\n'\n"

    inside(body)


def test_a_missing_module_is_told_in_one_line(provider: AgentProvider, spec: Callable[..., Any]) -> None:
    async def body() -> None:
        with pytest.raises(SandboxUnavailable, match=r"can't import .*no_such_module.*; install it") as caught:
            await provider.open(spec(provider.name, preload=("no_such_module",)))
        assert "\n" not in str(caught.value)
        await provider.aclose()

    asyncio.run(body())


def test_the_agent_also_starts_from_source(tmp_path: Path) -> None:
    """As it has to in an interpreter of another version; told nothing, it ends."""
    for compiled in (False, True):
        program = agent_program(compiled=compiled)
        assert len(program) < 128_000, "one argument of a command line"
        argv = [sys.executable, "-s", "-S", "-B", "-c", program]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, cwd=tmp_path, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
