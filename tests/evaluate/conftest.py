from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

DOMAIN = """
import os
from bat_core import Domain, Evaluator, Diagnosis, Stage, StageContract, BatError
from bat_core.model.leakage import HeldoutItem

D = "sha256:" + "0" * 64

class Contract(StageContract):
    name = "walled"
    def stages(self): return [Stage(id="A", title="A", goal="a", weight=1)]
    def tracks(self): return ["t"]
    def rubric(self, task, stage, stratum): ...
    def workspace(self, task): return {}
    def protected(self): return []
    def introduction(self, task): return ""
    def task_score(self, task, files): return None

class Bench(Evaluator):
    def __init__(self, settings): self.settings = settings
    def heldout(self): return [HeldoutItem(item_id="1", task="1", kind="text", text="SECRET TEXT")]
    def evaluate(self, policy, against, progress):
        print("SECRET TEXT on stdout")
        plain = dict(policy=policy.digest, suite=D, against=against.digest if against else None, overall=.5,
                     agentic=.5, stages={"A": .5}, tracks={"t": .5}, n=4)
        how = self.settings["how"]
        progress(1, 2)
        if how == "die": os._exit(3)
        if how == "raise": raise RuntimeError("SECRET TEXT")
        if how == "error": raise BatError("SECRET TEXT")
        if how == "class": raise type("SECRET_TEXT", (BatError,), {})("x")
        if how == "progress": progress("SECRET TEXT", 2)
        if how == "stage": plain["stages"] = {"SECRET_TEXT": .5}
        if how == "policy": plain["policy"] = "sha256:" + "5ec" * 21 + "5"
        if how in ("good", "extra"): plain["failures"] = {"A": 1, "late": 2}
        if how == "extra": return Diagnosis.model_construct(**(plain | {"note": "SECRET TEXT"}))
        if how == "text": return Diagnosis.model_construct(**(plain | {"stages": {"SECRET TEXT": .5}}))
        if how == "nan": return Diagnosis.model_construct(**(plain | {"overall": float("nan")}))
        if how == "huge": return Diagnosis.model_construct(**(plain | {"stages": {f"s{i}": .5 for i in range(9999)}}))
        if how == "frame":
            for fd in range(3, 20):
                try: os.write(fd, b"SECRET TEXT" * 99)
                except OSError: pass
            os._exit(0)
        if how == "environment": plain["n"] = len([k for k in os.environ if k.startswith("SOME_")])
        return Diagnosis(**plain)

class Walled(Domain):
    title = "walled"
    def contract(self): return Contract()
    def synthesizer(self): ...
    def expert(self, task, slips=None): ...
    def verifiers(self): return {}
    def failure_categories(self): return ["late"]
    def evaluator(self, suite, settings): return Bench(settings)
"""


@pytest.fixture
def walled(distribute: Callable[[str, str, str], Path]) -> str:
    """A distribution whose evaluator tries to get a secret out; return its domain's name."""
    distribute("walled", DOMAIN, "[bat_core.domains]\nwalled = walled:Walled\n")
    return "walled"
