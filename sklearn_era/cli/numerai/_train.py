"""``sklearn-era numerai train``: train the model."""

from typing import TYPE_CHECKING, Annotated

import typer

from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    ProgressBars,
    load,
    warnings_shown,
)

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Config
    from sklearn_era.numerai.workspace import Workspace


def train(
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the last checkpoint; the model is that of a training "
            "without a break.",
        ),
    ] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Train the model that the configuration describes."""
    settings, workspace = load(config)
    train_shown(settings, workspace, resume=resume)


def train_shown(config: "Config", workspace: "Workspace", *, resume: bool) -> None:
    """Train with bars, and say what was learnt from what."""
    from sklearn_era.numerai.data.locking import alone_in
    from sklearn_era.numerai.errors import DataError
    from sklearn_era.numerai.steps import train_model

    folder = workspace.model_dir
    # Two would remove each other's checkpoints.
    busy = DataError(f"Another run is training in {folder}: wait for its end.")
    with alone_in(folder, busy), warnings_shown(), ProgressBars() as bars:
        records = train_model(config, workspace, resume=resume, on_progress=bars)
    for name, record in records.items():
        typer.echo(
            f"Trained '{name}' on {record.n_rows:,} rows of {record.n_eras:,} eras "
            f"({record.first_era} to {record.last_era}) and {len(record.features):,} "
            f"features, for {record.target}: {workspace.model_dir / name}.skops"
        )
