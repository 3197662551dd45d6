"""``sklearn-era numerai download``: fetch Numerai's data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    ProgressBars,
    load,
    make_client,
    warnings_shown,
)

if TYPE_CHECKING:
    from sklearn_era.numerai.api.client import NumeraiClient
    from sklearn_era.numerai.config import Config
    from sklearn_era.numerai.workspace import Workspace


def download(
    refresh: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A file to fetch even if an older round's is here, 'validation' for "
            "one; repeatable.",
        ),
    ] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Fetch the files of the data that are not here, and the round's live file.

    Each is named by the current round, checked, and appears complete or not at
    all.
    """
    settings, workspace = load(config)
    client = make_client(settings, workspace.root)
    download_shown(settings, workspace, client, refresh=refresh or [])


def download_shown(
    config: "Config",
    workspace: "Workspace",
    client: "NumeraiClient",
    *,
    refresh: list[str],
) -> None:
    """Download with a bar for each file, and say what was done."""
    from sklearn_era.numerai.steps import download_files

    told: list[tuple[Path, str]] = []
    try:
        with warnings_shown(), ProgressBars(of_bytes=True) as bars:
            download_files(
                config,
                workspace,
                client,
                refresh=refresh,
                on_file=lambda name, path, what: told.append((path, what)),
                on_bytes=bars,
            )
    finally:
        # Also of those before one that failed, which are here for the next time.
        for path, what in told:
            typer.echo(f"{path}: {what}")
