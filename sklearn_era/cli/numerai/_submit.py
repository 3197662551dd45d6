"""``sklearn-era numerai submit``: upload a round's predictions."""

from typing import TYPE_CHECKING, Annotated

import typer

from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    RoundOption,
    load,
    make_client,
    warnings_shown,
)

if TYPE_CHECKING:
    from sklearn_era.numerai.api.client import NumeraiClient
    from sklearn_era.numerai.config import Config
    from sklearn_era.numerai.workspace import Workspace


def submit(
    round_number: RoundOption = None,
    require_open: Annotated[
        bool | None,
        typer.Option(
            "--require-open/--allow-closed",
            help="Whether to stop once the round has closed, rather than have Numerai "
            "queue the submission for the next; by default as configured.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Upload even what was submitted already."),
    ] = False,
    config: ConfigOption = CONFIG,
) -> None:
    """Check a round's predictions once more, upload them, and see that they arrived.

    The keys are read from NUMERAI_PUBLIC_ID and NUMERAI_SECRET_KEY, in the
    environment or in a file .env beside the configuration. Without an error,
    the submission is at Numerai; after one, run it again: nothing is submitted
    twice.
    """
    settings, workspace = load(config)
    client = make_client(settings, workspace.root)
    submit_shown(
        settings,
        workspace,
        client,
        round_number=round_number,
        require_open=require_open,
        again=again,
    )


def submit_shown(
    config: "Config",
    workspace: "Workspace",
    client: "NumeraiClient",
    *,
    round_number: int | None = None,
    require_open: bool | None = None,
    again: bool = False,
) -> None:
    """Submit, and say each step as it is done."""
    from sklearn_era.numerai.steps import submit_round

    with warnings_shown():
        record = submit_round(
            config,
            workspace,
            client,
            round_number=round_number,
            require_open=require_open,
            again=again,
            on_step=typer.echo,
        )
    typer.echo(f"Round {record.round_number}: submission {record.submission_id}.")
