"""``sklearn-era numerai weekly``: all that is to be done for a round."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sklearn_era.cli._errors import InputError
from sklearn_era.cli.numerai._common import CONFIG, ConfigOption, load, make_client

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Config
    from sklearn_era.numerai.workspace import Workspace


def weekly(
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Stop before the upload; needs no keys."),
    ] = False,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain", help="Train even if the model is the one configured."
        ),
    ] = False,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Do it on generated data in a folder of its own: no keys, no network, "
            "no upload.",
        ),
    ] = False,
    demo_folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder of --demo.")
    ] = Path("numerai-demo"),
    config: ConfigOption = CONFIG,
) -> None:
    """Download, train if need be, validate, predict, check, upload and record.

    The model is trained when there is none, or when its part of the configuration has
    changed; an interrupted training is continued. Run it again after any error: what
    is done is not done twice.
    """
    if demo:
        if dry_run or retrain:
            raise InputError(
                "--demo: neither --dry-run nor --retrain goes with it; it always "
                "trains, and never uploads."
            )
        from sklearn_era.cli.numerai._weekly_demo import run_demo

        run_demo(demo_folder)
        return

    from sklearn_era.cli.numerai._download import download_shown
    from sklearn_era.cli.numerai._export import export_shown
    from sklearn_era.cli.numerai._predict import predict_shown
    from sklearn_era.cli.numerai._submit import submit_shown

    settings, workspace = load(config)
    from sklearn_era.numerai import state, steps

    # What can be told at once is, before gigabytes and hours of work.
    steps.check_parameters(settings, workspace)
    client = make_client(settings, workspace.root)
    if not dry_run:
        client.check_keys()
        client.model_id(settings.model.name)
    download_shown(settings, workspace, client, refresh=[])
    reason = "--retrain" if retrain else state.reason_to_train(settings, workspace)
    if reason is not None:
        typer.echo(f"Training: {reason}.")
        resume = not retrain and state.has_checkpoint(workspace)
        _train(settings, workspace, resume=resume)
    if not state.has_report(workspace):
        _validate(settings, workspace)
    predict_shown(settings, workspace)
    if dry_run:
        typer.echo("Nothing was uploaded (--dry-run).")
    else:
        submit_shown(settings, workspace, client)
    if settings.export.weekly and not state.has_export(workspace):
        export_shown(settings, workspace)


def _validate(config: "Config", workspace: "Workspace") -> None:
    """Validate, unless the model was trained on all eras that there are."""
    from sklearn_era.cli.numerai._validate import validate_shown
    from sklearn_era.numerai.errors import NothingToValidateError

    try:
        validate_shown(config, workspace)
    except NothingToValidateError as error:
        typer.echo(f"Not validated: {error}")


def _train(config: "Config", workspace: "Workspace", *, resume: bool) -> None:
    """Train, and continue an interrupted training if it is of this configuration."""
    from sklearn_era.cli.numerai._train import train_shown
    from sklearn_era.numerai.errors import CheckpointError

    try:
        train_shown(config, workspace, resume=resume)
    except CheckpointError:
        typer.echo(
            "The interrupted training was of another configuration or other data: it "
            "is not continued."
        )
        train_shown(config, workspace, resume=False)
