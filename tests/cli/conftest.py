"""A domain that works, and breaks wherever it is told to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DOMAIN = """
import os
from bat_core import (Act, Actor, Domain, Evaluator, ItemVerdict, Message, Rubric, RubricItem, RubricVerifier, Stage,
                      StageContract, Task, TaskSynthesizer, ToolCall)
from bat_core.model.leakage import HeldoutItem

def trip(where):
    if os.environ.get("TRIP") == where:
        raise RuntimeError("the oven is\\n\x1b[31mcold " + "!" * 999)

class Contract(StageContract):
    name = "bakery"
    def stages(self): trip("stages"); return [Stage(id="A", title="bake", goal="Bake.", weight=1)]
    def tracks(self): return ["bread"]
    def rubric(self, task, stage, stratum):
        trip("rubric")
        return Rubric(stage="A", items=(RubricItem(id="A.a", criterion="a loaf", verifier="check:loaf"),))
    def workspace(self, task): trip("workspace"); return {"inputs/order": b"3"}
    def protected(self): return ["inputs/"]
    def introduction(self, task): return "A bakery."
    def task_score(self, task, files): trip("task_score"); return 1.0 if "loaf" in files else 0.0

class Synthesizer(TaskSynthesizer):
    def synthesize(self, request):
        trip("synthesize")
        yield Task(id=f"order-{request.seed}", domain="bakery", track=request.track, seed=request.seed)

class Baker(Actor):
    def act(self, history):
        trip("act")
        if len(history) > 2:
            return None
        call = ToolCall(name="execute_code", arguments={"language": "bash", "code": "echo bread > loaf"})
        return Act(stage="A", message=Message(role="assistant", tool_calls=(call,)))

class Loaf(RubricVerifier):
    async def verify(self, item, evidence):
        trip("verify")
        return ItemVerdict(item=item.id, passed="loaf" in evidence.files)

class Bench(Evaluator):
    def heldout(self):
        trip("heldout")
        return [HeldoutItem(item_id="1", task="1", kind="identifier", text="KESTREL-LAGOON-4711")]
    def evaluate(self, policy, against, progress): ...

class Bakery(Domain):
    title = "bakery"
    def contract(self): trip("contract"); return Contract()
    def synthesizer(self): trip("synthesizer"); return Synthesizer()
    def expert(self, task, slips=None): trip("expert"); return Baker()
    def verifiers(self): trip("verifiers"); return {"loaf": Loaf()}
    def sandbox(self): trip("sandbox"); return super().sandbox()
    def defaults(self): trip("defaults"); return {}
    def evaluator(self, suite, settings): return Bench()
"""


@pytest.fixture
def bakery(distribute: Callable[[str, str, str], Path]) -> Iterator[str]:
    """The name of a small domain that raises where the variable TRIP says."""
    from bat_core.rollout.lab import close_labs

    distribute("bakery", DOMAIN, "[bat_core.domains]\nbakery = bakery:Bakery\n")
    yield "bakery"
    close_labs()
    sys.modules.pop("bakery", None)
