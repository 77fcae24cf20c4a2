"""`bat base`: a domain's tiny base policy, from its own expert logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bat_core.cli.options import DomainOption, FileOption, Overrides, PresetOption, configuration


def base(
    output: Annotated[Path, typer.Option("--output", help="Folder for the policy; one that is there is replaced.")],
    overrides: Overrides = None,
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
) -> None:
    """Build a base policy: expert logs in the sandbox, tokenizer, pretraining. Prints its digest."""
    import tempfile

    from bat_core.cli.display import Display
    from bat_core.executors import LocalExecutor
    from bat_core.registry import load_domain
    from bat_core.rollout.lab import LabSpec
    from bat_core.training.base import build_base

    settings = configuration(domain, preset, config, overrides).config
    executor = LocalExecutor(settings.bank.workers)
    with tempfile.TemporaryDirectory() as store, Display() as display:
        sandbox = settings.sandbox
        lab = LabSpec(
            domain=settings.domain,
            store=store,
            provider=sandbox.provider,
            runtime=sandbox.runtime,
            rollout=settings.rollout,
        )
        try:
            progress = lambda phase, done, total: display.progress(phase, done, total, {})  # noqa: E731
            policy = build_base(load_domain(settings.domain), settings.policy, lab, executor, output, progress)
        finally:
            executor.close()
    print(policy.digest)
