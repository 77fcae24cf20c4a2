"""PolicyTrainer: improves a policy on given states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bat_core.model.base import JsonObject
from bat_core.model.message import ToolSpec
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.state import StageState
from bat_core.model.training import PolicyRef, Problem, Slice, TrainResult

Score = Callable[[StageState, Rollout], Reward]
Listen = Callable[[StageState, Rollout, Reward], None]
Progress = Callable[[str, int, int, JsonObject], None]


@dataclass(frozen=True)
class TrainJob:
    """Everything a phase of training needs besides its data.

    Attributes:
        policy: Where it starts.
        output: Folder for the result; it appears only when complete.
        settings: The configuration section of the phase, resolved.
        seed: Same job, same result on CPU.
        tools: Tools as shown to the policy.
        reference: theta*, to which KL is measured.
        probe: States on which KL is measured.
        batches: For GRPO, the states of each step, one group each, in order.
        progress: Called with (phase, done, total, metrics).
        listen: Called for each scored rollout.
    """

    policy: PolicyRef
    output: Path
    settings: JsonObject
    seed: int
    tools: Sequence[ToolSpec] = ()
    reference: PolicyRef | None = None
    probe: Sequence[StageState] = ()
    batches: Sequence[Sequence[StageState]] = ()
    progress: Progress = field(default=lambda *_: None)
    listen: Listen = field(default=lambda *_: None)


class PolicyTrainer(ABC):
    """Improves the policy: SFT cold start once, then GRPO round by round."""

    @abstractmethod
    def check(self, settings: JsonObject) -> Sequence[Problem]:
        """Return settings that this trainer can't honour; imports nothing heavy."""

    @abstractmethod
    def coldstart(self, job: TrainJob, slices: Sequence[Slice]) -> TrainResult:
        """Supervised fine-tuning on expert actions only: theta_0."""

    @abstractmethod
    def train(self, job: TrainJob) -> TrainResult:
        """GRPO on the job's batches."""
