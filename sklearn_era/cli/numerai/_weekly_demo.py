"""``sklearn-era numerai weekly --demo``: the week's work on data made up for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from sklearn_era.cli._errors import InputError
from sklearn_era.cli.numerai._common import load
from sklearn_era.cli.numerai._export import export_shown
from sklearn_era.cli.numerai._predict import predict_shown
from sklearn_era.cli.numerai._train import train_shown
from sklearn_era.cli.numerai._validate import validate_shown

if TYPE_CHECKING:
    from sklearn_era.numerai.demo import DemoData
    from sklearn_era.numerai.validation.scoring import ValidationResult
    from sklearn_era.numerai.workspace import Workspace

# Fewer, faster trees than for Numerai's own data, which are some hundred times as many.
_PARAMETERS: dict[str, Any] = {
    "split_criterion": "directional",
    "min_direction_agreement": 0.4,
    "min_era_coverage": 0.5,
    "max_iter": 300,
    "learning_rate": 0.05,
    "max_depth": 5,
    "max_leaf_nodes": 32,
    "min_samples_leaf": 100,
    "colsample_bytree": 0.2,
}
_VERSION = "v5.3"
_FILE = "numerai.toml"


def run_demo(folder: Path) -> None:
    """Do a week's work in a new folder, but for the download and the upload.

    Raises
    ------
    InputError
        If the folder exists and is not empty.
    """
    from sklearn_era._optional import import_optional

    import_optional("pydantic", extra="numerai")
    from sklearn_era.numerai.config import write_config
    from sklearn_era.numerai.demo import DEMO_TARGET, write_demo_data

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"--demo-folder: '{folder}' exists and is not an empty folder; remove it, "
            "or name another."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--demo-folder: cannot make '{folder}': {error.strerror}."
        ) from error
    write_config(
        folder / _FILE,
        name="demo",
        target=DEMO_TARGET,
        data={"version": _VERSION},
        train={
            "feature_set": "all",
            "compare_with_gain": True,
            "parameters": _PARAMETERS,
        },
    )
    config, workspace = load(folder / _FILE)
    data = write_demo_data(workspace)
    typer.echo(
        f"Made up data in Numerai's layout: {workspace.data_dir}\n"
        f"{len(data.stable_features)} features say a little about the target in every "
        f"era; {len(data.unstable_features)} say more, in some of the training eras, "
        "and the opposite later."
    )
    train_shown(config, workspace, resume=False)
    validate_shown(config, workspace)
    predict_shown(config, workspace)
    export_shown(config, workspace)
    _show_live_scores(workspace, data)
    typer.echo("Nothing was uploaded (--demo).")


def _show_live_scores(workspace: "Workspace", data: "DemoData") -> None:
    """Print what became of the live era and those after it, which nobody could know."""
    from sklearn_era.numerai.training.fitting import GAIN, MODEL
    from sklearn_era.numerai.training.model_store import load_trained
    from sklearn_era.numerai.validation.scoring import validate

    def score(name: str) -> "ValidationResult":
        estimator, record = load_trained(workspace.model_dir, name)
        return validate(
            estimator,
            validation=data.future,
            features=record.features,
            target=record.target,
            after_era=None,
            purge=0,
        )

    table = Table(title="The live eras, as they turned out")
    table.add_column("Model")
    table.add_column("split_criterion")
    for heading in ("CORR mean", "std", "Sharpe", "Eras"):
        table.add_column(heading, justify="right")
    for name in (MODEL, GAIN):
        corr = score(name).summary["corr"]
        criterion = _PARAMETERS["split_criterion"] if name == MODEL else GAIN
        table.add_row(
            name,
            criterion,
            *(f"{corr[key]:.4f}" for key in ("mean", "std", "sharpe")),
            f"{corr['n_eras']}",
        )
    Console(highlight=False).print(table)
    typer.echo(
        "The data were made to show this difference; whether yours do is for the "
        "validation report to say."
    )
