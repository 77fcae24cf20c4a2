"""Writing the page: one file that loads nothing, whatever the policy has said in it."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from bat_core.report.exhibits import exhibits
from bat_core.report.plots import overall_curve, reward_curve, stage_curves
from bat_core.report.reading import Run, read_run
from bat_core.report.tables import bank_table, counts, round_rows, suites, times


def write_page(run: Path) -> Path:
    """Write RUN/report/index.html from the run directory and return its path.

    An unfinished run gets a page of what is there.

    Raises:
        RunError: If `run` holds no run or a damaged one.
    """
    html = render(read_run(run))
    page = run / "report" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    partial = page.with_name(page.name + ".partial")
    partial.write_text(html, encoding="utf-8")
    partial.replace(page)
    return page


def render(run: Run) -> str:
    """Return the page as HTML; everything that comes from a run is escaped."""
    environment = Environment(
        loader=PackageLoader("bat_core.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        run=run,
        name=run.path.resolve().name,
        suites=suites(run),
        overall=overall_curve(run),
        stages=stage_curves(run),
        reward=reward_curve(run),
        rounds=round_rows(run),
        bank=bank_table(run.bank) if run.bank else None,
        exhibits=exhibits(run),
        counts=counts(run),
        times=times(run),
    )
