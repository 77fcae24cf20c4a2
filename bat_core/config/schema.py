"""The schema of a run's configuration: every key, its type and its limits."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A part of the configuration; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PolicyConfig(Section):
    """The policy to start from.

    `base` is a folder or model name; `domain` takes the base that the domain ships (or builds it from the domain's
    expert logs, once, cached by digest). The other keys say how such a tiny base is built.
    """

    base: str = "domain"
    hidden: int = Field(default=128, ge=16)
    layers: int = Field(default=2, ge=1)
    heads: int = Field(default=4, ge=1)
    vocabulary: int = Field(default=1024, ge=300)
    context: int = Field(default=2048, ge=128)
    logs: int = Field(default=320, ge=4, description="expert tasks solved for the base")
    steps: int = Field(default=600, ge=1)
    batch: int = Field(default=24, ge=1)
    lr: float = Field(default=2e-2, gt=0, description="of Muon, which moves the matrices")
    threads: int = Field(default=1, ge=1, description="threads while the base is built")


class ColdstartConfig(Section):
    """SFT on single-step slices of admitted expert trajectories."""

    slices: int = Field(default=256, ge=1)
    steps: int = Field(default=40, ge=0)
    batch: int = Field(default=16, ge=1)
    micro_batch: int = Field(default=16, ge=1)
    lr: float = Field(default=5e-4, gt=0)
    max_tokens: int = Field(default=1024, ge=16)
    validation: float = Field(default=0.05, ge=0, lt=1)


class RolloutConfig(Section):
    """How a policy is driven."""

    harness: str = "tool-loop"
    temperature: float = Field(default=1.0, gt=0)
    turns: int = Field(default=24, ge=1, description="assistant turns of an E2E rollout")
    stage_turns: int = Field(default=12, ge=1, description="assistant turns of a stage's rollout")
    turn_tokens: int = Field(default=64, ge=1)
    response_tokens: int = Field(default=16384, ge=1)
    observation_chars: int = Field(default=2048, ge=16)
    exec_s: float = Field(default=20.0, gt=0)
    live: int = Field(default=32, ge=1, description="sandboxes alive at once")


class SandboxConfig(Section):
    """Which backend runs untrusted code."""

    provider: str = "auto"
    runtime: str = Field(default="", description="container runtime of the docker provider, such as runsc")


class EndpointConfig(Section):
    """A model behind an OpenAI-compatible endpoint. `structured` says how the server is told the form of an answer."""

    endpoint: str = ""
    key_env: str = "OPENAI_API_KEY"
    timeout_s: float = Field(default=60.0, gt=0)
    retries: int = Field(default=1, ge=0, le=12, description="further tries if the endpoint can't be reached")
    concurrency: int = Field(default=8, ge=1, description="calls at once")
    temperature: float = Field(default=0.3, ge=0)
    answer_tokens: int = Field(default=400, ge=16)
    structured: Literal["schema", "object", "prompt"] = "schema"
    stream: bool = True
    cache: str = ""
    price_in: float = Field(default=0.0, ge=0, description="a million tokens, in any currency")
    price_out: float = Field(default=0.0, ge=0)


class TeacherConfig(EndpointConfig):
    """A teacher for the bank: `bank.synthesizer=teacher` proposes tasks, `bank.expert=teacher` solves them.

    Endpoint and model are read from `BAT_TEACHER_URL` and `BAT_TEACHER_MODEL` where they are empty, the key from
    `key_env`. Every exchange is kept in `cache`, so that a rerun costs nothing; its ledger is what the budget counts.
    """

    model: str = ""
    key_env: str = "BAT_TEACHER_KEY"
    retries: int = Field(default=5, ge=0, le=12, description="further tries, later each time")
    temperature: float = Field(default=0.7, ge=0)
    answer_tokens: int = Field(default=800, ge=16)
    tries: int = Field(default=3, ge=1, description="answers asked for before one counts as missing")
    similar: float = Field(default=0.7, gt=0, le=1, description="similarity from which a proposal is not new")
    turns: int = Field(default=40, ge=1, description="turns in which a task has to be solved")
    tokens: int = Field(default=0, ge=0, description="budget in tokens; 0 is none")
    money: float = Field(default=0.0, ge=0, description="budget by the prices; 0 is none")


class BankConfig(Section):
    """Size of the Stage Bank and how it is filled.

    `grow` tasks are added for each round after the first, while the round before trains; `ahead` says how many
    generations may be made before they are needed.
    """

    synthesizer: str = "self-instruct"
    expert: Literal["domain", "teacher"] = "domain"
    teacher: TeacherConfig = TeacherConfig()
    tasks: int = Field(default=96, ge=2)
    workers: int = Field(default=2, ge=0)
    grow: int = Field(default=0, ge=0, description="tasks a further generation; 0 keeps the bank as it is")
    ahead: int = Field(default=1, ge=1, description="generations made in advance")
    similar: float = Field(default=0.8, gt=0, le=2, description="similarity of near-copies; above 1 keeps all")
    cheats: bool = Field(default=True, description="try the domain's known cheats before admission")


class JudgeConfig(EndpointConfig):
    """A judge over an OpenAI-compatible endpoint, for rubric items whose verifier is `judge`.

    Without `endpoint` and `models` such items are null. The key is read from the environment variable `key_env`.
    Prices are in any currency per million tokens and only used to tell the cost. `structured` says how the server is
    told the form of an answer: by a JSON schema, as a JSON object, or in the prompt alone.
    """

    models: tuple[str, ...] = ()
    key_env: str = "BAT_JUDGE_KEY"
    votes: int = Field(default=3, ge=1, le=15, description="calls an item, over the models in turn")
    retries: int = Field(default=1, ge=0, le=5, description="further tries if the endpoint can't be reached")
    source_chars: int = Field(default=6000, ge=200, description="characters shown of one artifact or log")
    cache: str = Field(default="", description="folder of votes; empty keeps them in memory")


class VerifyConfig(Section):
    """How rollouts are judged.

    `drop` leaves a share of a rubric's items out of a training rollout's reward, the same ones for all rollouts of a
    state. `hidden` names items that are scored but do not stand in the policy's prompt. Neither changes an evaluation's
    items or the bank's admission.
    """

    judge: JudgeConfig = JudgeConfig()
    drop: float = Field(default=0.0, ge=0, lt=1)
    hidden: tuple[str, ...] = ()


class TrainConfig(Section):
    """GRPO. The reference settings of the method are the `gpu` preset."""

    trainer: str = "trl-grpo"
    groups: int = Field(default=8, ge=4, description="groups a batch")
    rollouts: int = Field(default=4, ge=2, description="K rollouts a group")
    steps: int = Field(default=8, ge=1, description="batches of rollouts a round")
    iterations: int = Field(default=1, ge=1, description="optimiser steps on each batch, clipped after the first")
    lr: float = Field(default=2.5e-7, gt=0)
    beta: float = Field(default=0.006, ge=0)
    loss: Literal["grpo", "dapo", "dr_grpo", "bnpo"] = "grpo"
    clip: float = Field(default=0.2, gt=0)
    grad_norm: float = Field(default=1.0, gt=0)
    micro_batch: int = Field(default=4, ge=1)
    scale: Literal["none", "group"] = "none"
    bf16: bool = True
    gradient_checkpointing: bool = True
    lora_rank: int = Field(default=0, ge=0, description="0 trains all parameters")
    probe: int = Field(default=16, ge=1, description="bank states on which KL is measured")


class MixtureConfig(Section):
    """Shares of the three pools; exact in every batch."""

    target: float = Field(default=0.50, ge=0, le=1)
    mix: float = Field(default=0.25, ge=0, le=1)
    e2e: float = Field(default=0.25, ge=0, le=1)


class GateConfig(Section):
    """Limits of the promotion gate, in 0-1 (0.01 is one point)."""

    overall: float = Field(default=0.01, gt=0)
    task: float = Field(default=0.03, gt=0)
    track: float = Field(default=0.05, gt=0)
    catastrophic: float = Field(default=0.20, gt=0)
    scale: Literal["interval", "point"] = "interval"
    on_hold: Literal["continue", "restart"] = "continue"
    patience: int = Field(default=2, ge=1)
    tau: float = Field(default=0.5, gt=0, description="largest KL(theta || theta*) per token")


class LoopConfig(Section):
    """The outer loop."""

    curriculum: str = "weakest-stage"
    rounds: int = Field(default=10, ge=1)


class EvaluateConfig(Section):
    """The benchmark behind the firewall."""

    tasks: int = Field(default=48, ge=2)
    blind_tasks: int = Field(default=48, ge=2)
    repeats: int = Field(default=1, ge=1)
    resamples: int = Field(default=2000, ge=100)
    confidence: float = Field(default=0.90, gt=0, lt=1)


class LeakageConfig(Section):
    """The preflight. Without a socket the run starts a checker of its own, which gives no confidentiality."""

    socket: str | None = Field(default=None, description="socket of `bat leakage serve`")
    receipt_key: str | None = Field(default=None, description="file with the key of that checker's receipts")
    overrides: str | None = Field(default=None, description="JSON lines of samples to admit all the same, with reasons")


class Config(Section):
    """Everything a run depends on."""

    domain: str = "medimaging"
    preset: str = "cpu"
    seed: int = 0
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = Field(default=1, ge=1)
    policy: PolicyConfig = PolicyConfig()
    bank: BankConfig = BankConfig()
    coldstart: ColdstartConfig = ColdstartConfig()
    rollout: RolloutConfig = RolloutConfig()
    sandbox: SandboxConfig = SandboxConfig()
    verify: VerifyConfig = VerifyConfig()
    train: TrainConfig = TrainConfig()
    mixture: MixtureConfig = MixtureConfig()
    gate: GateConfig = GateConfig()
    loop: LoopConfig = LoopConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    leakage: LeakageConfig = LeakageConfig()
