"""``sklearn-era numerai validate``: score the model era by era."""

import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    ProgressBars,
    load,
    warnings_shown,
)

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Config
    from sklearn_era.numerai.validation.scoring import ValidationResult
    from sklearn_era.numerai.workspace import Workspace


def validate(config: ConfigOption = CONFIG) -> None:
    """Score the model on the validation eras, and write a report.

    Eras that overlap the training targets are left out. The report has the
    scores of each era and what they sum up to as JSON, and figures.
    """
    settings, workspace = load(config)
    validate_shown(settings, workspace)


def validate_shown(config: "Config", workspace: "Workspace") -> None:
    """Validate with bars; print a table, and where the report is."""
    from sklearn_era.numerai.steps import validate_model

    with warnings_shown(), ProgressBars() as bars:
        results, files = validate_model(config, workspace, on_progress=bars)
    # Where there is no terminal, there is no width that the table has to fit.
    width = None if sys.stdout.isatty() else 200
    Console(highlight=False, width=width).print(_table(results))
    for result in results.values():
        for metric, why in result.skipped.items():
            typer.echo(f"{metric} was left out: {why}")
        break  # of the same files, so the same for both
    for name, result in results.items():
        for note in result.notes:
            typer.echo(f"Note on '{name}': {note}")
    typer.echo(f"Report: {files.json}")


def _table(results: "dict[str, ValidationResult]") -> Table:
    table = Table()
    for heading in ("Model", "Metric"):
        table.add_column(heading, overflow="fold")
    headings = ("mean", "std", "sharpe", "max_drawdown", "n_eras")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, result in results.items():
        for metric, summary in result.summary.items():
            cells = (summary[heading] for heading in headings)
            table.add_row(name, metric, *(_number(cell) for cell in cells))
    return table


def _number(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
