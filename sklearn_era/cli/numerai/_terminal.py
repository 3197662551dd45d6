"""What the commands print: sentences, bars, tables and warnings, each at once."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID
from rich.table import Table

from sklearn_era.cli._errors import warnings_printed

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Model

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
            *Progress.get_default_columns(),
            MofNCompleteColumn(),
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
            now = time.monotonic()
            if now - self._logged.setdefault(stage, now) >= _LOG_EVERY and done < total:
                self._logged[stage] = now
                typer.echo(f"{stage}: {done:,} of {total:,}", err=True)
            return
        if total >= _MEGABYTE:  # bytes, and no trees
            stage, done, total = f"{stage} (MB)", done // _MEGABYTE, total // _MEGABYTE
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total or None)
        self._progress.update(self._tasks[stage], completed=done, total=total or None)
        if total and done >= total:
            self._progress.remove_task(self._tasks.pop(stage))

    def validated(self, model: "Model", results: Any, files: list[Path]) -> None:
        """Print the scores of a model beside those of others, and where they are."""
        statistics = ("mean", "std", "sharpe", "max_drawdown", "n_eras")
        rows, notes = [], list[str]()
        for name, result in results.items():
            shown, of = (model.name, "") if name == "model" else (name, f"{name}: ")
            for metric, summary in result.summary.items():
                cells = (number(summary[statistic]) for statistic in statistics)
                rows.append([shown, metric.replace("max_feature_", "max "), *cells])
                shown = ""  # a long one would be folded in each line
            if name == "model":
                left = result.skipped.items()
                notes += (f"{metric} was left out: {why}" for metric, why in left)
            notes += (f"{of}{note}" for note in result.notes)
        title = f"Validation of {model.name}, on {model.train.target}"
        headings = ("Model", "Metric", "mean", "std", "sharpe", "drawdown", "eras")
        print_table(title, headings, rows)
        for note in dict.fromkeys(notes):
            typer.echo(note)
        typer.echo("Report: " + ", ".join(map(str, files)))


@contextmanager
def terminal() -> Iterator[Terminal]:
    """A terminal whose bars are shown in the block, and warnings at once as lines."""
    told = Terminal()
    with warnings_printed(), told._progress:
        yield told


def print_table(
    title: str, headings: Iterable[str], rows: Iterable[Iterable[str]]
) -> None:
    """Print a table; where there is no terminal, there is no width it has to fit."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        is_text = heading in ("Model", "Metric")
        table.add_column(
            heading, justify="left" if is_text else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 200
    Console(highlight=False, width=width).print(table)


def number(value: float | int | None) -> str:
    """A cell of a table: a score, or a number of eras."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
