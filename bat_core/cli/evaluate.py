"""`bat evaluate`: a policy's diagnosis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bat_core.cli.options import DomainOption, FileOption, JsonOption, Overrides, PresetOption, RunOption, configuration


def evaluate(
    policy: Annotated[Path, typer.Argument(help="Folder of the policy.")],
    overrides: Overrides = None,
    against: Annotated[Path | None, typer.Option("--against", help="Policy to pair with.")] = None,
    suite: Annotated[str, typer.Option("--suite", help="heldout or blind.")] = "heldout",
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
    run: RunOption = Path("runs/evaluate"),
    as_json: JsonOption = False,
) -> None:
    """Evaluate a policy in the evaluator's own process; only aggregates come back."""
    from bat_core.cli.display import Display, scores_table
    from bat_core.errors import ConfigError
    from bat_core.evaluate.client import EvaluatorProcess
    from bat_core.evolve.directory import RunDirectory
    from bat_core.evolve.settings import evaluator_settings
    from bat_core.training.checkpoint import refer

    if suite not in ("heldout", "blind"):
        raise ConfigError(f"no suite named {suite!r}", remedy="use heldout or blind")
    name: Literal["heldout", "blind"] = "heldout" if suite == "heldout" else "blind"
    settings = configuration(domain, preset, config, overrides).config
    mine, other = refer(policy.resolve()), refer(against.resolve()) if against else None
    with RunDirectory(run) as directory, Display() as display:
        values = evaluator_settings(settings, directory, name)
        with EvaluatorProcess(settings.domain, name, values, directory.evaluator) as evaluator:
            diagnosis = evaluator.evaluate(mine, other, lambda d, t: display.progress(f"evaluate {suite}", d, t, {}))
        display.console.print(
            scores_table(f"{policy} ({suite}, n={diagnosis.n}, invalid {diagnosis.invalid})", diagnosis)
        )
    if as_json:
        print(diagnosis.model_dump_json())
