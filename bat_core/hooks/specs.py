"""Life-cycle events, as pluggy hook specifications (project name `bat_core`).

Observers implement any of these with `@bat_core.hookimpl`. Return values are ignored. An observer that
raises is logged once and dropped after three failures; the run goes on.
"""

from __future__ import annotations

import pluggy

from bat_core.model.decision import Decision
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.mixture import Mixture
from bat_core.model.reward import Reward
from bat_core.model.rollout import Rollout
from bat_core.model.run import BankReport, RunInfo, RunSummary

HOOKSPEC_VERSION = "1.0"

hookspec = pluggy.HookspecMarker("bat_core")
hookimpl = pluggy.HookimplMarker("bat_core")


@hookspec
def bat_run_start(run: RunInfo) -> None:
    """A run starts or goes on."""


@hookspec
def bat_bank_built(run: RunInfo, report: BankReport) -> None:
    """A generation of the Stage Bank is complete."""


@hookspec
def bat_round_start(run: RunInfo, mixture: Mixture) -> None:
    """A round's mixture was prescribed."""


@hookspec
def bat_rollout_scored(run: RunInfo, rollout: Rollout, reward: Reward) -> None:
    """A training rollout was scored."""


@hookspec
def bat_round_evaluated(run: RunInfo, diagnosis: Diagnosis) -> None:
    """A candidate was evaluated."""


@hookspec
def bat_decision(run: RunInfo, decision: Decision) -> None:
    """A candidate was promoted, held or rolled back."""


@hookspec
def bat_run_end(run: RunInfo, summary: RunSummary) -> None:
    """A run is complete."""
