"""What the commands share: the configuration, progress, warnings, keys."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sklearn_era._optional import import_optional
from sklearn_era.cli._errors import one_sentence

if TYPE_CHECKING:
    from sklearn_era.numerai.api.client import NumeraiClient
    from sklearn_era.numerai.config import Config, Loaded

ConfigOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        metavar="TOML",
        help="The configuration file; data, models and reports lie beside it.",
    ),
]
RoundOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--round", min=0, help="The round; by default the newest downloaded."),
]
CONFIG = Path("numerai.toml")


def load(path: Path) -> "Loaded":
    """Read the configuration file, once all packages are known to be there."""
    for package in ("pydantic", "pandas", "pyarrow", "numerapi", "numerai_tools"):
        import_optional(package, extra="numerai")
    from sklearn_era.numerai.config import load_config

    return load_config(path)


def make_client(config: "Config", folder: Path) -> "NumeraiClient":
    """The client of Numerai's API, with keys from the environment or folder/.env."""
    from sklearn_era.numerai.api.client import NumeraiClient

    return NumeraiClient.from_environment(
        env_file=folder / ".env",
        timeout=config.submit.timeout,
        retries=config.submit.retries,
    )


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Print warnings as lines of their own, once the block is left."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                typer.echo(f"Warning: {one_sentence(text)}", err=True)


class ProgressBars:
    """Bars for the stages of some work, each with the time left.

    Where standard error is no terminal, as in a log of a scheduled run, there are none.

    Parameters
    ----------
    of_bytes : bool, default=False
        Whether bytes are counted.
    """

    def __init__(self, *, of_bytes: bool = False) -> None:
        self._tasks: dict[str, TaskID] = {}
        console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            DownloadColumn() if of_bytes else TextColumn("{task.completed:,.0f}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.file.isatty(),
        )

    def __enter__(self) -> "ProgressBars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Move a stage's bar; the first call makes it."""
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total or None)
        self._progress.update(self._tasks[stage], completed=done, total=total or None)
