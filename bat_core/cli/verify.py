"""`bat verify`: rewards of rollouts from a file, and how verdicts agree with labels."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bat_core.cli.options import DomainOption, FileOption, JsonOption, Overrides, PresetOption, configuration

if TYPE_CHECKING:
    from bat_core.config.schema import Config
    from bat_core.model.reward import Reward
    from bat_core.verify.sealed import SealedRollout


def verify(
    file: Annotated[
        Path | None, typer.Argument(help="Sealed rollouts (JSONL), or a round's rollouts.parquet with --run.")
    ] = None,
    overrides: Overrides = None,
    calibrate: Annotated[
        Path | None, typer.Option("--calibrate", help="Sealed rollouts with labels: print agreement with them.")
    ] = None,
    judge: Annotated[str, typer.Option("--judge", help="Endpoint of the judge, such as http://host:8000/v1.")] = "",
    model: Annotated[list[str] | None, typer.Option("--model", help="Model of the judge; may be repeated.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="Run directory that rollouts.parquet belongs to.")] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Only write the rollouts as sealed rollouts to this file.")
    ] = None,
    domain: DomainOption = "medimaging",
    preset: PresetOption = "cpu",
    config: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score rollouts from a file again, each item with its reason; tell what the judge costs before and after."""
    from bat_core.errors import ConfigError
    from bat_core.verify.sealed import read_sealed, write_sealed

    words = list(overrides or ())
    if file is not None and "=" in file.name and not file.exists():  # key=value stands where FILE may be left out
        words, file = [str(file), *words], None
    words += [f"verify.judge.endpoint={judge}"] if judge else []
    words += [f"verify.judge.models=[{','.join(model)}]"] if model else []
    if (file is None) == (calibrate is None):
        raise ConfigError("give either FILE or --calibrate LABELLED", remedy="see `bat verify --help`")
    settings = configuration(domain, preset, config, words).config
    source = file or calibrate
    assert source is not None
    rollouts = _from_run(source, run, settings) if source.suffix == ".parquet" else list(read_sealed(source))
    if export is not None:
        write_sealed(export, rollouts)
        return
    rewards = _score(rollouts, settings)
    if calibrate is not None:
        _calibration(rollouts, rewards, as_json)
    else:
        _rewards(rollouts, rewards, as_json)


def _from_run(path: Path, run: Path | None, settings: Config) -> list[SealedRollout]:
    """Return the rollouts of a round with their evidence from the run's store."""
    from bat_core.bank.store import read
    from bat_core.errors import ConfigError, RunError
    from bat_core.evolve.records import read_rollouts
    from bat_core.model.rollout import Rollout
    from bat_core.registry import load_domain
    from bat_core.sandboxes.snapshots import SnapshotStore
    from bat_core.verify.chain import verify_chain
    from bat_core.verify.scorer import Scorer
    from bat_core.verify.sealed import SealedRollout

    if run is None:
        raise ConfigError(f"{path} holds no files of its own", remedy="add --run with the run directory")
    states = {state.id: state for state in read(run / "bank").states}
    scorer = Scorer(load_domain(settings.domain), SnapshotStore(run / "bank" / "snapshots"))
    secret = run / "key"
    key = secret.read_bytes() if secret.exists() else b""
    out = []
    for row in read_rollouts(path.parent):
        rollout = Rollout.model_validate_json(row["rollout"])
        state = states.get(rollout.state)
        if state is None:
            raise ConfigError(f"{run} has no state {rollout.state!r}", remedy="name the run of these rollouts")
        if not verify_chain(key, (*state.receipts, *rollout.receipts)):
            raise RunError(f"the receipts of {rollout.state!r} are not what {run} wrote", remedy="name the right --run")
        if rollout.end != "lost":
            name = f"{rollout.state}#{rollout.index}"
            out.append(SealedRollout.of(name, settings.domain, state.rubrics, scorer.seal(state, rollout)))
    return out


def _score(rollouts: Sequence[SealedRollout], settings: Config) -> list[Reward]:
    import asyncio

    from bat_core.registry import load_domain
    from bat_core.sandboxes.snapshots import SnapshotStore
    from bat_core.verify.judge.verifier import JudgeVerifier
    from bat_core.verify.scorer import Scorer

    async def work() -> list[Reward]:
        scorers: dict[str, Scorer] = {}
        for one in rollouts:
            if one.domain not in scorers:
                scorers[one.domain] = Scorer(load_domain(one.domain), SnapshotStore(Path()), settings=settings.verify)
        try:
            found = [scorers[one.domain].assess(one.rubrics, one.evidence()) for one in rollouts]
            return list(await asyncio.gather(*found))
        finally:
            for scorer in scorers.values():
                for verifier in scorer.used():
                    if isinstance(verifier, JudgeVerifier):
                        print(verifier.spent.line(settings.verify.judge), file=sys.stderr)
                await scorer.aclose()

    _announce(rollouts, settings)
    return asyncio.run(work())


def _announce(rollouts: Sequence[SealedRollout], settings: Config) -> None:
    """Say what the judge will cost, before it does."""
    from bat_core.verify.judge.cost import estimate
    from bat_core.verify.judge.sources import all_text, sources_of

    items = characters = 0
    for one in rollouts:
        asked = sum(item.verifier == "judge" for rubric in one.rubrics for item in rubric.items)
        if asked:
            items += asked
            characters += asked * len(all_text(sources_of(one.evidence(), settings.verify.judge.source_chars)))
    if items:
        print(estimate(items, characters, settings.verify.judge), file=sys.stderr)
    elif settings.verify.judge.endpoint:
        print("judge: no item of these rollouts is judged", file=sys.stderr)


def _rewards(rollouts: Sequence[SealedRollout], rewards: Sequence[Reward], as_json: bool) -> None:
    if as_json:
        pairs = zip(rollouts, rewards, strict=True)
        print(json.dumps([{"id": one.id, "digest": r.digest, **r.model_dump(mode="json")} for one, r in pairs]))
        return
    from rich.console import Console
    from rich.table import Table

    from bat_core.cli.wording import number

    table = Table("rollout", "item", "v", "eta", "claimed", "reason")
    for one, reward in zip(rollouts, rewards, strict=True):
        head = f"r {number(reward.value)}, |c| {reward.items}, nulls {reward.nulls} {reward.breach or reward.reason}"
        table.add_row(one.id, "", "", number(reward.evidence), "", head, style="bold")
        for verdict in (verdict for stage in reward.stages for verdict in stage.verdicts):
            shown = {True: "1", False: "0", None: "null"}[verdict.passed]
            why = "; ".join([verdict.reason, *(f"{slot.name} {slot.trust:g}: {slot.reason}" for slot in verdict.slots)])
            table.add_row("", verdict.item, shown, number(verdict.evidence), "yes" if verdict.claimed else "", why)
    Console().print(table, markup=False)


def _calibration(rollouts: Sequence[SealedRollout], rewards: Sequence[Reward], as_json: bool) -> None:
    from bat_core.errors import VerifierError
    from bat_core.verify.calibrate import Compared, tables

    compared = []
    for one, reward in zip(rollouts, rewards, strict=True):
        verdicts = {verdict.item: verdict.passed for stage in reward.stages for verdict in stage.verdicts}
        names = {item.id: item.verifier for rubric in one.rubrics for item in rubric.items}
        strange = sorted(set(one.labels) - set(names))
        if strange:
            raise VerifierError(f"rollout {one.id}: label for {strange[0]!r}, which its rubrics lack", remedy="mend it")
        compared += [Compared(item, names[item], label, verdicts[item]) for item, label in one.labels.items()]
    if not compared:
        raise VerifierError("no rollout of the file has labels", remedy='add "labels": {"ITEM": true} to its lines')
    found = tables(compared)
    if as_json:
        print(json.dumps({name: {key: one.row() for key, one in part.items()} for name, part in found.items()}))
        return
    from rich.console import Console
    from rich.table import Table

    from bat_core.cli.wording import number

    for name, part in found.items():
        columns = (
            "n",
            "agreement",
            "kappa",
            "false accept",
            "pass/pass",
            "fail/pass",
            "pass/fail",
            "fail/fail",
            "null",
        )
        table = Table(name, *columns, "may pay")
        for key, agreed in part.items():
            counts = (agreed.right_pass, agreed.false_pass, agreed.lost_pass, agreed.right_fail, agreed.nulls)
            measures = (number(agreed.agreement), number(agreed.kappa), number(agreed.false_accept))
            paying = "yes" if agreed.trustworthy else "no"
            table.add_row(key, str(agreed.judged + agreed.nulls), *measures, *map(str, counts), paying)
        Console().print(table, markup=False)
