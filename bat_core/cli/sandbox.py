"""`bat sandbox build` and `bat sandbox reap`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

T = TypeVar("T")
app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
ProviderOption = Annotated[str, typer.Option("--provider", help="Sandbox backend that has images.")]


@app.callback()
def root() -> None:
    """Build a domain's sandbox image, remove what dead runs left."""


@app.command("build")
def build(
    domain: Annotated[str, typer.Argument(help="Domain plugin.")] = "medimaging", provider: ProviderOption = "docker"
) -> None:
    """Build the image that the domain's sandboxes run in, from this host alone, and print its id.

    The same host and the same domain give the same id. A run builds a missing image by itself.
    """
    from bat_core.registry import load_domain

    spec = load_domain(domain).sandbox()
    print(_with(provider, lambda one: one.build(spec)))


@app.command("reap")
def reap(provider: ProviderOption = "docker") -> None:
    """Remove what dead owners left on this machine, and nothing else; print each."""
    for one in _with(provider, lambda found: found.reap()):
        print(one)


def _with(name: str, work: Callable[[Any], Awaitable[T]]) -> T:
    from bat_core.registry import load

    async def whole(folder: str) -> T:
        provider = load("sandboxes", name)(Path(folder))
        try:
            return await work(provider)
        finally:
            await provider.aclose()

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(whole(folder))
