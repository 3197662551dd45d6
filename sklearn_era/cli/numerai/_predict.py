"""``sklearn-era numerai predict``: predict the live era of a round."""

from typing import TYPE_CHECKING

import typer

from sklearn_era.cli._errors import one_sentence
from sklearn_era.cli.numerai._common import (
    CONFIG,
    ConfigOption,
    RoundOption,
    load,
    warnings_shown,
)

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Config
    from sklearn_era.numerai.workspace import Workspace


def predict(round_number: RoundOption = None, config: ConfigOption = CONFIG) -> None:
    """Predict a round's live era, check the submission and write it as CSV.

    Nothing is sent.
    """
    settings, workspace = load(config)
    predict_shown(settings, workspace, round_number=round_number)
    _warn_of_another_model(settings, workspace)


def _warn_of_another_model(config: "Config", workspace: "Workspace") -> None:
    """Say if the model that is there is not the one configured."""
    from sklearn_era.numerai.errors import DataError
    from sklearn_era.numerai.state import reason_to_train

    try:
        reason = reason_to_train(config, workspace)
    except DataError:
        return  # a file that says so is not here, and predictions can do without it
    if reason is not None:
        typer.echo(f"Warning: the model is to be trained again: {reason}.", err=True)


def predict_shown(
    config: "Config", workspace: "Workspace", *, round_number: int | None = None
) -> None:
    """Predict, and print what one looks at before an upload."""
    from sklearn_era.numerai.errors import DataError
    from sklearn_era.numerai.steps import correlations_with_others, predict_round

    with warnings_shown():
        prediction = predict_round(config, workspace, round_number=round_number)
    values = prediction.frame["prediction"]
    typer.echo(
        f"Round {prediction.round_number}: {len(values):,} predictions from "
        f"{values.min():.4f} to {values.max():.4f}, standard deviation "
        f"{values.std(ddof=0):.4f}: {prediction.path}"
    )
    try:
        others = correlations_with_others(config, workspace, prediction)
    except DataError as error:
        # Of a file to compare with, which is no reason not to submit.
        typer.echo(f"Warning: {one_sentence(error)}", err=True)
        others = {}
    for name, correlation in others.items():
        typer.echo(f"Rank correlation with {name}: {correlation:.3f}")
