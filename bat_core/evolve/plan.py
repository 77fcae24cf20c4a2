"""The plan of a run and the work to expect, without doing any of it."""

from __future__ import annotations

from bat_core.config.schema import Config
from bat_core.model.base import JsonObject
from bat_core.model.task import Stratum


def plan(config: Config, stages: int, tracks: int) -> JsonObject:
    """Return the phases of a run with their amounts of work."""
    train, rounds, evaluation = config.train, config.loop.rounds, config.evaluate
    shares = config.mixture.model_dump()
    heldout = evaluation.tasks * evaluation.repeats * (rounds + 1)
    blind = evaluation.blind_tasks * evaluation.repeats * 2
    rollouts = train.steps * train.groups * train.rollouts + train.probe
    cells = (stages + 1) * tracks * len(Stratum)
    return {
        "bank": {"tasks": config.bank.tasks, "states": config.bank.tasks * (stages + 1), "cells": cells},
        "coldstart": config.coldstart.model_dump(include={"slices", "steps", "batch"}),
        "round": {
            "steps": train.steps,
            "groups_per_step": {pool: round(share * train.groups) for pool, share in shares.items()},
            "rollouts": rollouts,
        },
        "rounds": rounds,
        "evaluations": {"heldout_cells": heldout, "blind_cells": blind},
        "total_rollouts": rounds * rollouts + heldout + blind,
    }
