"""`bat report`: a run's web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(run: Annotated[Path, typer.Argument(help="Run directory.")] = Path("runs/demo")) -> None:
    """Write RUN/report/index.html, self-contained."""
    from bat_core.report.page import write_page

    print(write_page(run))
