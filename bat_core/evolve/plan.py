"""The plan of a run and the work to expect, without doing any of it."""

from __future__ import annotations

from bat_core.config.schema import Config
from bat_core.model.base import JsonObject


def plan(config: Config, stages: int, tracks: int) -> JsonObject:
    """Return the phases of a run with their amounts of work."""
    train, rounds = config.train, config.loop.rounds
    per_step = train.groups * train.rollouts
    cells = config.evaluate.tasks * config.evaluate.repeats
    return {
        "bank": {
            "tasks": config.bank.tasks,
            "states": config.bank.tasks * (stages + 1),
            "cells": (stages + 1) * tracks * 3,
        },
        "coldstart": {
            "slices": config.coldstart.slices,
            "steps": config.coldstart.steps,
            "batch": config.coldstart.batch,
        },
        "round": {
            "steps": train.steps,
            "groups_per_step": {
                "target": round(config.mixture.target * train.groups),
                "mix": round(config.mixture.mix * train.groups),
                "e2e": round(config.mixture.e2e * train.groups),
            },
            "rollouts": train.steps * per_step + train.probe,
        },
        "rounds": rounds,
        "evaluations": {
            "heldout_cells": cells * (rounds + 1),
            "blind_cells": 2 * config.evaluate.blind_tasks * config.evaluate.repeats,
        },
        "total_rollouts": rounds * (train.steps * per_step + train.probe)
        + cells * (rounds + 1)
        + 2 * config.evaluate.blind_tasks * config.evaluate.repeats,
    }
