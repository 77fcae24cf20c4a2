from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bat_core.bank.states import Cut, cut
from bat_core.bank.store import Bank, read
from bat_core.bank.trajectory import Trajectory, solve
from bat_core.config.schema import Config
from bat_core.model.task import Task
from bat_core.rollout.lab import Lab, LabSpec


@pytest.fixture(scope="session")
def lab(small_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of the real domain with real sandboxes."""
    store = str(tmp_path_factory.mktemp("store"))
    spec = LabSpec(domain="medimaging", store=store, provider="bubblewrap", key="cd" * 32, rollout=small_config.rollout)
    with Lab(spec) as lab:
        yield lab


@pytest.fixture(scope="session")
def runs(lab: Lab, small_tasks: list[Task]) -> list[Trajectory]:
    """The expert's runs through the small tasks."""
    return [lab.run(solve(lab, task, lab.domain.expert(task))) for task in small_tasks]


@pytest.fixture(scope="session")
def cuts(lab: Lab, runs: list[Trajectory]) -> list[Cut]:
    """All states of those runs."""
    return [one for run in runs for one in cut(lab, run)]


@pytest.fixture(scope="session")
def bank(small_run: Path) -> Bank:
    """A bank of the small tasks."""
    return read(small_run / "bank")
