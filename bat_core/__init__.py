"""bat-core: a benchmark that scores the stages of a long workflow becomes the teacher of the policy it scores.

The front door: what a plugin author needs, by name. Each name is imported when it is first used (PEP 562), so that
`import bat_core` costs nothing. Everything else lives in its room, such as `bat_core.curriculum`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bat_core.errors import BatError
    from bat_core.hooks.actor import Act, Actor
    from bat_core.hooks.contract import StageContract
    from bat_core.hooks.curriculum import CurriculumPolicy
    from bat_core.hooks.domain import Domain
    from bat_core.hooks.evaluator import Evaluator
    from bat_core.hooks.executor import Executor
    from bat_core.hooks.fault import Fault
    from bat_core.hooks.harness import Harness
    from bat_core.hooks.leakage_rule import LeakageRule
    from bat_core.hooks.sandbox import Sandbox, SandboxProvider
    from bat_core.hooks.specs import HOOKSPEC_VERSION, hookimpl
    from bat_core.hooks.synthesizer import SynthesisRequest, TaskSynthesizer
    from bat_core.hooks.trainer import PolicyTrainer
    from bat_core.hooks.verifier import RubricVerifier
    from bat_core.model.decision import Decision
    from bat_core.model.diagnosis import Diagnosis
    from bat_core.model.evidence import Evidence
    from bat_core.model.message import Message, ToolCall
    from bat_core.model.mixture import Mixture
    from bat_core.model.receipt import Receipt
    from bat_core.model.reward import Reward
    from bat_core.model.rollout import Rollout
    from bat_core.model.rubric import Cap, Rubric, RubricItem
    from bat_core.model.sandbox import SandboxSpec
    from bat_core.model.stage import E2E, Stage
    from bat_core.model.state import StageState
    from bat_core.model.task import Stratum, Task
    from bat_core.model.verdict import ItemVerdict

    __version__: str

__all__ = [
    "E2E",
    "HOOKSPEC_VERSION",
    "Act",
    "Actor",
    "BatError",
    "Cap",
    "CurriculumPolicy",
    "Decision",
    "Diagnosis",
    "Domain",
    "Evaluator",
    "Evidence",
    "Executor",
    "Fault",
    "Harness",
    "ItemVerdict",
    "LeakageRule",
    "Message",
    "Mixture",
    "PolicyTrainer",
    "Receipt",
    "Reward",
    "Rollout",
    "Rubric",
    "RubricItem",
    "RubricVerifier",
    "Sandbox",
    "SandboxProvider",
    "SandboxSpec",
    "Stage",
    "StageContract",
    "StageState",
    "Stratum",
    "SynthesisRequest",
    "Task",
    "TaskSynthesizer",
    "ToolCall",
    "__version__",
    "hookimpl",
]

_HOMES = {
    "errors": "BatError",
    "hooks.actor": "Act Actor",
    "hooks.contract": "StageContract",
    "hooks.curriculum": "CurriculumPolicy",
    "hooks.domain": "Domain",
    "hooks.evaluator": "Evaluator",
    "hooks.executor": "Executor",
    "hooks.fault": "Fault",
    "hooks.harness": "Harness",
    "hooks.leakage_rule": "LeakageRule",
    "hooks.sandbox": "Sandbox SandboxProvider",
    "hooks.specs": "HOOKSPEC_VERSION hookimpl",
    "hooks.synthesizer": "SynthesisRequest TaskSynthesizer",
    "hooks.trainer": "PolicyTrainer",
    "hooks.verifier": "RubricVerifier",
    "model.decision": "Decision",
    "model.diagnosis": "Diagnosis",
    "model.evidence": "Evidence",
    "model.message": "Message ToolCall",
    "model.mixture": "Mixture",
    "model.receipt": "Receipt",
    "model.reward": "Reward",
    "model.rollout": "Rollout",
    "model.rubric": "Cap Rubric RubricItem",
    "model.sandbox": "SandboxSpec",
    "model.stage": "E2E Stage",
    "model.state": "StageState",
    "model.task": "Stratum Task",
    "model.verdict": "ItemVerdict",
}
_HOME = {name: f"bat_core.{module}" for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("bat-core")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'bat_core' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
