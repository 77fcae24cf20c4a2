"""The plugin as the core finds it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from bat_medimaging import MedImagingDomain

from bat_core.hooks.domain import Domain

PROJECT = Path(__file__).parents[1]


def test_the_entry_point_names_the_domain() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["bat_core.domains"]["medimaging"] == "bat_medimaging:MedImagingDomain"
    assert issubclass(MedImagingDomain, Domain) and MedImagingDomain.api == "1.0"


def test_everything_given_is_protected(helpers: Any) -> None:
    for task in helpers.every_kind():
        prefixes = tuple(helpers.CONTRACT.protected())
        assert all(path.startswith(prefixes) for path in helpers.CONTRACT.workspace(task))


def test_the_expert_never_touches_what_is_given(helpers: Any, runs: Any, slipped: Any) -> None:
    for run in [*runs, *slipped]:
        assert {path: run.evidence.files.get(path) for path in run.start} == run.start


def test_the_sandbox_has_the_toolbelt_and_tight_limits(helpers: Any) -> None:
    spec = helpers.DOMAIN.sandbox()
    belt = Path(spec.toolbelt)
    assert (belt / "phx" / "__init__.py").is_file() and (belt / "bin" / "phx").is_file()
    assert "phx" in spec.preload and spec.limits.memory < 512 << 20 and spec.limits.disk <= 64 << 20


def test_weights_sum_to_one_and_skills_exist(helpers: Any) -> None:
    stages = helpers.CONTRACT.stages()
    assert [stage.weight for stage in stages] == [0.25, 0.15, 0.35, 0.15, 0.10]
    skills = helpers.DOMAIN.skills()
    assert [stage.id for stage in stages] == list(skills)
    assert all(path.is_file() for path in skills.values()) and helpers.DOMAIN.workflow().is_file()


def test_skills_give_no_answer_and_name_real_commands(helpers: Any) -> None:
    import re

    from bat_medimaging.toolbelt import phx

    names = set(helpers.DOMAIN.names()) - {"reed"}
    for path in helpers.DOMAIN.skills().values():
        text = path.read_text()
        assert not names & set(re.findall(r"\w+", text))
        assert set(re.findall(r"phx\.(\w+)\(", text)) <= set(phx.__all__)


def test_prompts_are_short(helpers: Any) -> None:
    for task in helpers.every_kind():
        assert len(helpers.CONTRACT.introduction(task)) <= 120
        for stage in helpers.CONTRACT.stages():
            rubric = helpers.CONTRACT.rubric(task, stage.id, task.stratum)
            assert len(helpers.CONTRACT.instruction(task, stage, rubric)) <= 420


def test_faults_are_described_where_they_show(helpers: Any) -> None:
    faults = helpers.DOMAIN.faults()
    assert {"P1", "U3", "V1", "V2", "V5", "P2", "I1", "F2", "F3", "F5"} <= {fault.id for fault in faults}
    assert [fault.id for fault in faults if not fault.recoverable] == ["F5"]
    assert set(helpers.DOMAIN.failure_categories()) >= {fault.id for fault in faults}
