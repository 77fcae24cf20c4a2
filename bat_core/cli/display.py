"""What a person sees of a run: progress and a table a round, on standard error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from bat_core.config.schema import Config
from bat_core.model.base import JsonObject
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.history import RoundRecord
from bat_core.model.mixture import Mixture
from bat_core.model.run import BankReport, RunSummary


class Display:
    """Progress bars and tables of a run. A context manager."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<20}"),
            BarColumn(28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        """Start drawing."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._progress.stop()

    def progress(self, phase: str, done: int, total: int, metrics: JsonObject) -> None:
        """Show how far a phase is."""
        if phase not in self._tasks:
            for old in self._tasks.values():
                self._progress.remove_task(old)
            self._tasks = {phase: self._progress.add_task(phase, total=total, note="")}
        note = " ".join(
            f"{key} {metrics[key]:.3f}" for key in ("reward", "loss", "kl") if isinstance(metrics.get(key), float)
        )
        self._progress.update(self._tasks[phase], completed=done, total=total, note=note)

    def announce(self, event: str, value: object) -> None:
        """Print what has been decided."""
        if isinstance(value, BankReport):
            counts = f"{value.states} states and {value.slices} slices of {value.tasks} tasks"
            said = f"{event}: {counts}, {value.rejected} rejected, {value.digest[:19]}"
            self.console.print(said, soft_wrap=True)
        elif isinstance(value, Mixture):
            self.console.print(f"round {value.round}: {value.reason}; groups a batch {value.groups}")
        elif isinstance(value, Diagnosis):
            self.console.print(scores_table(f"{event} (held-out, n={value.n})", value))
        elif isinstance(value, RoundRecord):
            self._round(value)

    def _round(self, record: RoundRecord) -> None:
        decision, signals = record.decision, record.signals
        self.console.print(scores_table(f"round {record.round} (held-out, n={record.diagnosis.n})", record.diagnosis))
        gain = "not measured" if decision.gain is None else f"{100 * decision.gain:+.1f}"
        kl = f"KL {_number(signals.kl)} (k3 {_number(signals.kl_k3)})"
        self.console.print(f"  reward {_number(signals.reward)}  {kl}  gain {gain}")
        self.console.print(f"  [bold]{decision.outcome.replace('_', ' ')}[/bold]: {decision.reason}")

    def summary(self, summary: RunSummary, page: Path) -> None:
        """Print the outcome."""
        table = Table(title=f"{summary.name}: {summary.stop_reason}", title_justify="left", box=None, padding=(0, 1))
        for column in (
            "suite",
            "policy",
            "overall",
            "agentic",
            "task",
            "finished",
            *summary.heldout["best"]["stages"],
            "n",
        ):
            table.add_column(column, no_wrap=True, justify="left" if column in ("suite", "policy") else "right")
        for suite in ("heldout", "blind"):
            for policy in ("coldstart", "best"):
                row = getattr(summary, suite)[policy]
                values = [row["overall"], row["agentic"], row["task"], row["finished"], *row["stages"].values()]
                table.add_row(suite, policy, *("-" if v is None else f"{v:.1f}" for v in values), str(row["n"]))
        self.console.print(table)
        self.console.print(f"seconds: {summary.seconds}")
        self.console.print(f"page: {page}")


def scores_table(title: str, diagnosis: Diagnosis) -> Table:
    """Return one row of scores in points."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1))
    whole = {"overall": diagnosis.overall, "agentic": diagnosis.agentic, "task": diagnosis.task}
    values: dict[str, Any] = {**whole, **diagnosis.stages, **diagnosis.tracks}
    for name in values:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(*("-" if value is None else f"{100 * value:.1f}" for value in values.values()))
    return table


def print_plan(config: Config, plan: JsonObject) -> None:
    """Print a plan for people."""
    bank, coldstart, one, cells = plan["bank"], plan["coldstart"], plan["round"], plan["evaluations"]
    mixture = ", ".join(f"{pool} {count}" for pool, count in one["groups_per_step"].items())
    lines = (
        f"domain {config.domain}, preset {config.preset}, seed {config.seed}",
        f"1. bank: {bank['tasks']} tasks, about {bank['states']} states over {bank['cells']} cells; preflight on all",
        f"2. cold start: {coldstart['steps']} SFT steps of {coldstart['batch']} on {coldstart['slices']} slices",
        f"3. {plan['rounds']} rounds at the weakest stage: {one['steps']} GRPO steps of groups {mixture};",
        f"   {one['rollouts']} rollouts a round, then held-out evaluation and gate",
        f"4. evaluations: {cells['heldout_cells']} held-out cells, {cells['blind_cells']} blind cells",
        f"work to expect: {plan['total_rollouts']} rollouts in sandboxes",
    )
    print("\n".join(lines))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
