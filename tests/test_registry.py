"""The registry on real distributions, made on the fly, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ZYGOTE = """
import importlib, json, os, sys, traceback
import stevedore.driver
from loguru import logger
from bat_core import registry
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if not child:
        out = os.open(request["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        err = os.open(request["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(err, 2)
        logger.remove()
        logger.add(sys.stderr)
        os.environ.update(request["environment"])
        sys.path.insert(0, request["folder"])
        importlib.invalidate_caches()
        try:
            exec(request["code"], {"r": registry})
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print("done", flush=True)
"""
"""A process with the registry imported that forks one child a question: imports of plugins leave no trace."""


@pytest.fixture(scope="module")
def zygote() -> Iterator[subprocess.Popen[str]]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("BAT_")}
    with subprocess.Popen(
        [sys.executable, "-c", ZYGOTE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


class Site:
    """A folder on sys.path with distributions in it."""

    def __init__(self, folder: Path, zygote: subprocess.Popen[str]) -> None:
        self.folder = folder
        self.zygote = zygote
        self.log = ""

    def add(self, name: str, module: str, code: str, entries: str, version: str = "0.1.0") -> None:
        (self.folder / f"{module}.py").write_text(textwrap.dedent(code))
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entries))

    def run(self, code: str, **environment: str) -> str:
        """Run code with the registry as `r`; return what it printed, else the last line of its errors."""
        out, err = self.folder / "out", self.folder / "err"
        request = {
            "folder": str(self.folder),
            "code": textwrap.dedent(code),
            "environment": environment | {"PYTHONDONTWRITEBYTECODE": "1"},
            "out": str(out),
            "err": str(err),
        }
        assert self.zygote.stdin is not None and self.zygote.stdout is not None
        self.zygote.stdin.write(json.dumps(request) + "\n")
        self.zygote.stdin.flush()
        assert self.zygote.stdout.readline() == "done\n"
        self.log = err.read_text()
        return out.read_text().strip() or self.log.strip().splitlines()[-1]


@pytest.fixture
def site(tmp_path: Path, zygote: subprocess.Popen[str]) -> Site:
    return Site(tmp_path, zygote)


DICE = "class Dice: pass\n"


def test_a_plugin_is_found_by_name_by_qualified_name_and_by_target(site: Site) -> None:
    site.add("bat-nlp", "nlp", DICE, "[bat_core.verifiers]\ndice = nlp:Dice\n")
    code = "print(*[r.load('verifiers', n).__module__ for n in ('dice', 'bat-nlp/dice', 'nlp:Dice')])"
    assert site.run(code) == "nlp nlp nlp"


def test_an_unknown_name_lists_what_is_there(site: Site) -> None:
    site.add("bat-nlp", "nlp", DICE, "[bat_core.verifiers]\ndice = nlp:Dice\n")
    assert site.run("r.load('verifiers', 'dise')").endswith(
        "PluginError: no plugin named 'dise' of kind verifiers; did you mean 'dice'? installed: check, dice, judge"
    )
    assert site.run("r.load('judges', 'x')").endswith("no plugin named 'x' of kind judges; installed: none")


def test_one_name_of_two_distributions_must_be_qualified(site: Site) -> None:
    site.add("bat-nlp", "nlp", DICE, "[bat_core.verifiers]\ndice = nlp:Dice\n")
    site.add("bat-med", "med", DICE, "[bat_core.verifiers]\ndice = med:Dice\n")
    assert site.run("r.load('verifiers', 'dice')").endswith(
        "the name 'dice' of kind verifiers is taken twice: bat-med/dice, bat-nlp/dice; use one of these names"
    )
    assert site.run("print(r.load('verifiers', 'bat-med/dice').__module__)") == "med"
    assert site.run("print(r.load('verifiers', 'dice').__module__)", BAT_PLUGINS="bat-nlp") == "nlp"


def test_only_the_chosen_plugin_is_imported(site: Site) -> None:
    site.add("bat-nlp", "nlp", DICE, "[bat_core.verifiers]\ndice = nlp:Dice\n")
    site.add("bat-bad", "bad", "print('side effect')\nraise SystemExit(7)\n", "[bat_core.verifiers]\ndice = bad:Dice\n")
    assert site.run("print(r.load('verifiers', 'bat-nlp/dice').__module__)") == "nlp"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import missing_part", "ModuleNotFoundError: No module named 'missing_part'"),
        ("def f(:", "SyntaxError: "),
        ("raise AssertionError('odd')", "AssertionError: odd"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("", "AttributeError: module 'nlp' has no attribute 'Dice'"),
    ],
)
def test_a_broken_plugin_is_named_with_all_that_helps(site: Site, code: str, cause: str) -> None:
    site.add("bat-nlp", "nlp", code, "[bat_core.verifiers]\ndice = nlp:Dice\n")
    said = site.run("r.load('verifiers', 'dice')")
    assert "verifiers plugin 'dice' from bat-nlp 0.1.0 (nlp:Dice) failed to import: " + cause in said
    assert said.endswith("; mend or reinstall it: pip install --force-reinstall bat-nlp")
    assert cause in site.run("r.load('verifiers', 'nlp:Dice')")
    assert site.run("print([f.name for f in r.installed('verifiers')])") == "['check', 'dice', 'judge']"


def test_broken_leakage_rules_stop_and_are_not_skipped(site: Site) -> None:
    site.add("bat-nlp", "nlp", "import missing_part", "[bat_core.leakage_rules]\nextra = nlp:Extra\n")
    assert "leakage_rules plugin 'extra' from bat-nlp" in site.run("r.load_all('leakage_rules')")


def test_a_domain_of_another_api_is_refused(site: Site) -> None:
    entries = "[bat_core.domains]\nnlp = nlp:D\n"
    site.add("bat-nlp", "nlp", "class D:\n    api = '2.0'\n", entries)
    assert site.run("r.load_domain('nlp')").endswith(
        "domain 'nlp' (nlp) was written for hook API 2.0; this bat-core speaks 1.0; "
        "install a matching version of the domain or of bat-core"
    )
    (site.folder / "nlp.py").write_text("class D:\n    api = '1.7'\n")
    assert site.run("print(type(r.load_domain('nlp')).__name__)") == "D"
    (site.folder / "nlp.py").write_text("class D: pass\n")
    assert "was written for hook API none" in site.run("r.load_domain('nlp')")


def test_a_domain_that_lacks_methods_is_a_plugin_error(site: Site) -> None:
    site.add(
        "bat-nlp", "nlp", "from bat_core import Domain\nclass D(Domain): pass\n", "[bat_core.domains]\nnlp = nlp:D\n"
    )
    said = site.run("r.load_domain('nlp')")
    assert "PluginError: domain 'nlp' (nlp:D) can't be made: TypeError: Can't instantiate abstract class D" in said


@pytest.mark.parametrize(
    ("wanted", "names"), [("none", "[]"), ("", "[]"), ("bat-nlp", "['n']"), ("bat-med, bat-nlp", "['m', 'n']")]
)
def test_the_environment_says_which_distributions_count(site: Site, wanted: str, names: str) -> None:
    site.add("bat-nlp", "nlp", DICE, "[bat_core.judges]\nn = nlp:Dice\n")
    site.add("bat-med", "med", DICE, "[bat_core.judges]\nm = med:Dice\n")
    assert site.run("print([f.name for f in r.installed('judges')])", BAT_PLUGINS=wanted) == names
    assert site.run("print(r.load('verifiers', 'check').__name__)", BAT_PLUGINS=wanted) == "CheckVerifier"


OBSERVER = """
from bat_core import hookimpl
class O:
    {body}
"""
EMIT = """
o = r.Observers()
for _ in range({times}):
    o.emit('bat_decision', run='RUN', decision='DECISION')
print(o.dropped)
"""


def observe(site: Site, body: str, times: int = 1, **environment: str) -> str:
    code = OBSERVER.format(body=body.replace("\n", "\n    "))
    site.add("bat-nlp", "nlp", code, "[bat_core.observers]\no = nlp:O\n")
    return site.run(EMIT.format(times=times), **environment)


def test_an_observer_gets_the_arguments_that_it_names(site: Site) -> None:
    assert observe(site, "@hookimpl\ndef bat_decision(self, decision): print(decision)") == "DECISION\n[]"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("@hookimpl\ndef bat_decison(self, decision): pass", "unknown hook 'bat_decison'"),
        ("@hookimpl\ndef bat_decision(self, verdict): pass", "{'verdict'}"),
        ("def bat_decision(self, decision): pass", "O.bat_decision lacks @hookimpl"),
        ("def __init__(self): raise OSError('no network')", "no network"),
        (
            "api = '2.3'\n@hookimpl\ndef bat_decision(self, decision): print('called')",
            "O was written for hook API 2.3; this bat-core speaks 1.0; install a matching version",
        ),
    ],
)
def test_an_observer_that_can_not_work_is_skipped_with_a_warning_or_fatal(site: Site, body: str, said: str) -> None:
    assert observe(site, body) == "['bat-nlp/o']"
    assert "observer bat-nlp/o skipped: " in site.log and said in site.log
    last = site.run(EMIT.format(times=1), BAT_STRICT_PLUGINS="1")
    assert last.startswith("bat_core.errors.PluginError: observer bat-nlp/o is not usable: ") and said in last


def test_an_observer_of_this_major_version_takes_part(site: Site) -> None:
    assert observe(site, "api = '1.9'\n@hookimpl\ndef bat_decision(self, decision): print(decision)") == "DECISION\n[]"


@pytest.mark.parametrize(
    ("kind", "how"), [("verifiers", "load('verifiers', 'x')"), ("leakage_rules", "load_all('leakage_rules')")]
)
def test_any_plugin_of_another_api_is_refused(site: Site, kind: str, how: str) -> None:
    site.add("bat-nlp", "nlp", "class D: api = '2.0'\n", f"[bat_core.{kind}]\nx = nlp:D\n")
    said = site.run(f"r.{how}")
    assert f"PluginError: {kind} plugin " in said and "was written for hook API 2.0; this bat-core speaks 1.0; " in said
    (site.folder / "nlp.py").write_text("class D: api = '1.4'\n")
    assert site.run(f"print(len([r.{how}]))") == "1"


def test_an_observer_that_raises_is_logged_once_and_dropped_after_three(site: Site) -> None:
    body = "@hookimpl\ndef bat_decision(self): print('called'); raise ValueError('oops')"
    assert observe(site, body, times=5) == "called\ncalled\ncalled\n['bat-nlp/o']"
    assert site.log.count("Traceback") == 1
    assert "observer bat-nlp/o raised in bat_decision" in site.log
    assert "observer bat-nlp/o dropped after three failures" in site.log
    last = site.run(EMIT.format(times=5) + "\n", BAT_STRICT_PLUGINS="1")
    assert last == "called" and "observer bat-nlp/o raised in bat_decision: oops; mend it or unset" in site.log


def test_a_raising_observer_does_not_stop_the_next(site: Site) -> None:
    code = """
    from bat_core import hookimpl
    class Bad:
        @hookimpl
        def bat_decision(self): raise ValueError('oops')
    class Good:
        @hookimpl
        def bat_decision(self): print('good')
    """
    site.add("bat-nlp", "nlp", code, "[bat_core.observers]\na = nlp:Bad\nb = nlp:Good\nc = nlp:Bad\n")
    assert site.run(EMIT.format(times=1)) == "good\n[]"


def test_two_extra_observers_of_one_class_both_count(site: Site) -> None:
    code = """
    from bat_core import hookimpl
    class O:
        def __init__(self, n): self.n = n
        @hookimpl
        def bat_decision(self): print(self.n)
    o = r.Observers([O(1), O(2)])
    o.emit('bat_decision', run=1, decision=2)
    print(o.dropped)
    """
    assert sorted(site.run(code).split()) == ["1", "2", "[]"]


def test_the_signatures_of_the_hooks_are_what_they_were() -> None:
    """Adding a hook or an argument raises the minor version of the hook API; anything else the major one."""
    import inspect

    from bat_core.hooks import specs

    hooks = {n: list(inspect.signature(f).parameters) for n, f in vars(specs).items() if n.startswith("bat_")}
    assert specs.HOOKSPEC_VERSION == "1.0"
    assert hooks == {
        "bat_run_start": ["run"],
        "bat_bank_built": ["run", "report"],
        "bat_round_start": ["run", "mixture"],
        "bat_rollout_scored": ["run", "rollout", "reward"],
        "bat_round_evaluated": ["run", "diagnosis"],
        "bat_decision": ["run", "decision"],
        "bat_run_end": ["run", "summary"],
    }
