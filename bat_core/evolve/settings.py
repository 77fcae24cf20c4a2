"""From a configuration to the settings of labs, trainers and evaluators."""

from __future__ import annotations

from pathlib import Path

from bat_core.config.schema import Config, TeacherConfig
from bat_core.evolve.base_policy import cache_folder
from bat_core.evolve.directory import RunDirectory
from bat_core.hooks.domain import Suite
from bat_core.model.base import JsonObject, digest_of
from bat_core.rollout.lab import LabSpec


def lab_spec(config: Config, run: RunDirectory) -> LabSpec:
    """Return the lab in which the bank is made and the policy trains."""
    return LabSpec(
        domain=config.domain,
        store=str(run.snapshots.resolve()),
        provider=config.sandbox.provider,
        runtime=config.sandbox.runtime,
        key=run.key().hex(),
        rollout=config.rollout,
        verify=config.verify,
    )


def trainer_settings(config: Config, lab: LabSpec) -> JsonObject:
    """Return what a trainer is configured with."""
    return {
        "lab": lab.model_dump(mode="json"),
        "train": config.train.model_dump(mode="json"),
        "coldstart": config.coldstart.model_dump(mode="json"),
        "device": config.device,
        "threads": config.threads,
        "temperature": config.rollout.temperature,
        "response_tokens": config.rollout.response_tokens,
    }


def evaluator_settings(config: Config, run: RunDirectory, suite: Suite) -> JsonObject:
    """Return what an evaluator is configured with; its snapshots stay in its own folder."""
    folder = run.evaluator.resolve()
    lab = lab_spec(config, run).model_copy(update={"store": str(folder / "snapshots")})
    return {
        "lab": lab.model_dump(mode="json"),
        "folder": str(folder / suite),
        "device": config.device,
        "threads": config.threads,
        "temperature": config.rollout.temperature,
        "tasks": config.evaluate.tasks if suite == "heldout" else config.evaluate.blind_tasks,
        "repeats": config.evaluate.repeats,
        "resamples": config.evaluate.resamples,
        "confidence": config.evaluate.confidence,
    }


def proof_folder(config: Config) -> Path | None:
    """Return where it is kept that no cheat pays, None if cheats are not to be tried."""
    return cache_folder() / "proofs" if config.bank.cheats else None


def teacher_of(config: Config) -> TeacherConfig:
    """Return the bank's teacher, whose exchanges are kept in the user's cache unless a folder is named."""
    teacher = config.bank.teacher
    return teacher if teacher.cache else teacher.model_copy(update={"cache": str(cache_folder() / "teacher")})


def seed_of(config: Config, *what: object) -> int:
    """Return a seed (28 bits) that depends on the run's seed and on what it is for."""
    return int(digest_of([config.seed, *what])[7:14], 16)
