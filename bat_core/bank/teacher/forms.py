"""The forms in which a teacher is heard, and what it is told before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bat_core.hooks.domain import Domain
from bat_core.hooks.synthesizer import SynthesisRequest
from bat_core.model.task import Stratum

Turn = dict[str, str]
TEXT_LIMIT = 12_000


class Answer(BaseModel):
    """Anything a teacher says; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pattern(Answer):
    """A kind of task that the workflow has."""

    name: str = Field(min_length=1, max_length=60)
    stage: str = Field(max_length=20)
    what: str = Field(min_length=1, max_length=400)


class Patterns(Answer):
    """What a teacher has read out of the workflow."""

    patterns: tuple[Pattern, ...] = Field(min_length=1, max_length=40)


class Proposal(Answer):
    """A fictional task."""

    pattern: str = Field(min_length=1, max_length=60)
    title: str = Field(min_length=3, max_length=120)
    brief: str = Field(min_length=20, max_length=800)


class Move(Answer):
    """One turn of solving: code to run in the sandbox, or, as `final`, the last words."""

    stage: str = Field(max_length=20)
    kind: Literal["call", "final"]
    language: Literal["python", "bash"] = "python"
    text: str = Field(max_length=8000)


def workflow(domain: Domain) -> str:
    """Return what is public about a domain: its description, stages with goals and recovery, tracks and faults."""
    path, contract = domain.workflow(), domain.contract()
    told = path.read_text(encoding="utf-8")[:TEXT_LIMIT] if path is not None else domain.title
    stages = [
        f"{stage.id} {stage.title}: {stage.goal} (recovery: {'; '.join(stage.recovery) or 'none'})"
        for stage in contract.stages()
    ]
    faults = [f"{fault.id} in {fault.stage}: {fault.repair}" for fault in domain.faults()]
    tracks = ", ".join(contract.tracks())
    return "\n".join([told, f"Tracks: {tracks}", "Stages:", *stages, "Faults that can be planted:", *faults])


def patterns_prompt(domain: Domain) -> list[Turn]:
    """Return the question for patterns."""
    return [
        {"role": "system", "content": _system(Patterns, "You read a workflow and name the kinds of tasks it has.")},
        {
            "role": "user",
            "content": f"{workflow(domain)}\n\nName up to 12 patterns, each with the stage it tries most.",
        },
    ]


def proposal_prompt(
    domain: Domain, patterns: Sequence[Pattern], seeds: Sequence[Proposal], request: SynthesisRequest, refused: str
) -> list[Turn]:
    """Return the question for one task, with examples from the pool and why the last proposal was refused."""
    kinds = "\n".join(f"- {one.name} ({one.stage}): {one.what}" for one in patterns)
    pool = "\n".join(f"- {one.title}: {one.brief}" for one in seeds) or "- none yet"
    wish = f"Track {request.track}. {_stratum(request)}"
    more = f"\nYour last proposal was refused: {refused}. Propose something else." if refused else ""
    return [
        {"role": "system", "content": _system(Proposal, "You invent fictional tasks for a workflow. No real names.")},
        {
            "role": "user",
            "content": f"{workflow(domain)}\n\nPatterns:\n{kinds}\n\nTasks that exist:\n{pool}\n\n{wish}{more}",
        },
    ]


def solving_system(stages: Sequence[str]) -> str:
    """Return what is said before a task is solved."""
    job = (
        "You are the expert. Work through the stages in order, one call a turn: kind is call and text the code, which"
        " runs in /workspace and answers with what it prints. Where a case can't be done, stop honestly and say so."
        f" Stages: {', '.join(stages)}. At the very end kind is final and text your true last words."
    )
    return _system(Move, job)


def _stratum(request: SynthesisRequest) -> str:
    if request.stratum is Stratum.SUCCESS:
        return "Nothing is wrong in it."
    heavy = "stacked or beyond repair" if request.stratum is Stratum.FAILURE else "one that can be repaired"
    return f"It has a fault that shows in {request.stage or 'any stage'}, {heavy}."


def _system(form: type[Answer], job: str) -> str:
    schema = json.dumps(form.model_json_schema(), separators=(",", ":"))
    return f"{job} Answer with one JSON object of this schema and nothing else: {schema}"
