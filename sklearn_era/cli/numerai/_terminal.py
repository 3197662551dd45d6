"""What the commands print: sentences, bars, tables and warnings, each at once."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from sklearn_era.cli._errors import warnings_printed

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Model
    from sklearn_era.numerai.validation import ValidationResult

# Seconds between two lines about the same stage where there is no terminal for a bar.
_LOG_EVERY = 60.0
_MEGABYTE = 10**6


class Terminal:
    """Tells of the work: on standard output what was done, on standard error bars.

    Where standard error is no terminal, as in the log of a scheduled run, a line a
    minute says how far a stage has come.
    """

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        self._is_terminal = console.file.isatty()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self._is_terminal,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._logged: dict[str, float] = {}

    def step(self, text: str) -> None:
        """Print a sentence about what was done."""
        typer.echo(text)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage has come: trees, eras, columns, or bytes."""
        if not self._is_terminal:
            self._log(stage, done, total)
            return
        if total >= _MEGABYTE:  # bytes, and no trees
            stage, done, total = f"{stage} (MB)", done // _MEGABYTE, total // _MEGABYTE
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total or None)
        self._progress.update(self._tasks[stage], completed=done, total=total or None)
        if total and done >= total:
            self._progress.remove_task(self._tasks.pop(stage))

    def _log(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        last = self._logged.setdefault(stage, now)
        if now - last >= _LOG_EVERY and done < total:
            self._logged[stage] = now
            typer.echo(f"{stage}: {done:,} of {total:,}", err=True)

    def validated(
        self,
        model: "Model",
        results: "Mapping[str, ValidationResult]",
        files: Sequence[Path],
    ) -> None:
        """Print the scores of a model beside those of others, and where they are."""
        title = f"Validation of {model.name}, on {model.train.target}"
        table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for heading in ("Model", "Metric"):
            table.add_column(heading, overflow="fold")
        headings = ("mean", "std", "sharpe", "max_drawdown", "n_eras")
        for heading in headings:
            shown = heading.removeprefix("max_").removeprefix("n_")
            table.add_column(shown, justify="right")
        for name, result in results.items():
            for metric, summary in result.summary.items():
                cells = (number(summary[heading]) for heading in headings)
                shown = model.name if name == "model" else name
                metric = metric.replace("max_feature_", "max ")
                table.add_row(shown, metric, *cells)
        print_table(table)
        notes = dict.fromkeys(
            [
                *(
                    f"{metric} was left out: {why}"
                    for metric, why in next(iter(results.values())).skipped.items()
                ),
                *(
                    note if name == "model" else f"{name}: {note}"
                    for name, result in results.items()
                    for note in result.notes
                ),
            ]
        )
        for note in notes:
            typer.echo(note)
        typer.echo("Report: " + ", ".join(map(str, files)))


@contextmanager
def terminal() -> Iterator[Terminal]:
    """A terminal whose bars are shown in the block, and warnings at once as lines."""
    told = Terminal()
    with warnings_printed(), told._progress:
        yield told


def print_table(table: Table) -> None:
    """Print a table; where there is no terminal, there is no width it has to fit."""
    width = None if sys.stdout.isatty() else 200
    Console(highlight=False, width=width).print(table)


def number(value: float | int | None) -> str:
    """A cell of a table: a score, or a number of eras."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
