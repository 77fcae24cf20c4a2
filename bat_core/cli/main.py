"""`bat`: finds the command by name and imports nothing else; `--help` imports none of them."""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.metadata import entry_points, version
from typing import Any

import typer

from bat_core.cli.guard import guarded

COMMANDS = {
    "evolve": ("bat_core.cli.evolve:evolve", "Run the main job: bank, cold start, rounds. Resumes by itself."),
    "bank": ("bat_core.cli.bank:app", "Build and look at the Stage Bank."),
    "base": ("bat_core.cli.base:base", "Build a domain's tiny base policy from its expert logs."),
    "evaluate": ("bat_core.cli.evaluate:evaluate", "Evaluate a policy behind the firewall."),
    "leakage": ("bat_core.cli.leakage:app", "Check files for held-out content: index, check, audit, serve."),
    "verify": ("bat_core.cli.verify:verify", "Score rollouts from a file again, or compare verdicts with labels."),
    "report": ("bat_core.cli.report:report", "Write a run's web page."),
    "sandbox": ("bat_core.cli.sandbox:app", "Build a domain's sandbox image, remove what dead runs left."),
    "plugins": ("bat_core.cli.plugins:app", "List installed plugins."),
    "config": ("bat_core.cli.config:app", "Show a configuration, or its schema."),
    "doctor": ("bat_core.cli.doctor:doctor", "Check what this machine can do."),
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done, 1 a check found something, 2 wrong use, 130 interrupted."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["--version"]:
        print(version("bat-core"))
        return
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    wanted = next((word for word in words if not word.startswith("-")), None)
    application(wanted, debug=debug)(words or ["--help"], prog_name="bat")


def application(wanted: str | None, *, debug: bool = False) -> typer.Typer:
    """Return the application with the command `wanted` loaded; the others are only names with their one line."""
    app = typer.Typer(
        help="Turns a benchmark that scores stages into a teacher.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
    )

    @app.callback()
    def root() -> None:
        """Turns a benchmark that scores stages into a teacher. Options: --version, --debug (show tracebacks)."""

    for name, (target, text) in COMMANDS.items():
        _add(app, name, text, _load(target, debug=debug) if name == wanted else _name_only)
    for entry in entry_points(group="bat_core.commands"):
        loaded = _plugin(entry.name, debug=debug) if entry.name == wanted else _name_only
        _add(app, entry.name, f"(from {entry.dist.name if entry.dist else 'a plugin'})", loaded)
    return app


def _add(app: typer.Typer, name: str, text: str, command: Any) -> None:
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, help=text)
    else:
        app.command(name, help=text)(command)


def _name_only() -> None:
    """Stand for a command that was not asked for."""


def _load(target: str, *, debug: bool) -> Any:
    module, _, name = target.partition(":")
    command = getattr(importlib.import_module(module), name)
    if not isinstance(command, typer.Typer):
        return guarded(command, debug=debug)
    for registered in command.registered_commands:
        assert registered.callback is not None
        registered.callback = guarded(inspect.unwrap(registered.callback), debug=debug)  # once, however often we load
    return command


def _plugin(name: str, *, debug: bool) -> Any:
    def load() -> Any:
        from bat_core.registry import load

        return load("commands", name)

    return guarded(guarded(load, debug=debug)(), debug=debug)
