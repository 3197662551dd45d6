"""``sklearn-era numerai run --demo``: a round's work on data made up for it."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from sklearn_era.cli._errors import InputError
from sklearn_era.cli.numerai._common import load
from sklearn_era.cli.numerai._terminal import print_table, terminal

if TYPE_CHECKING:
    from sklearn_era.numerai.blend import Blend
    from sklearn_era.numerai.demo import DemoData

# A folder with this file is the demo's own, and is made anew.
_MARK = ".sklearn-era-demo"
# Fewer, faster trees than for Numerai's own data, which are some hundred times as many.
_TOML = """\
# What the demo was made with; 'sklearn-era numerai init' writes a file for real data.
format = 2

[[model]]
name = "demo"
[[model.member]]
name = "amber"
[[model.member]]
name = "birch"
target = "target_birch_20"

[train]
target = "target_amber_20"
feature_set = "all"
# The eras of the validation file are left to judge the model by.
files = ["train"]

[train.parameters]
max_iter = 200
learning_rate = 0.05
colsample_bytree = 0.2

[validate]
compare_with_gain = true
"""


def run_demo(folder: Path) -> None:
    """Do a round's work in a folder of the demo's own, without download and upload."""
    from sklearn_era.numerai import steps
    from sklearn_era.numerai.blend import load_blend
    from sklearn_era.numerai.demo import write_demo_data
    from sklearn_era.numerai.validation import GAIN

    is_own = (folder / _MARK).is_file()
    if folder.exists() and not is_own and (folder.is_file() or any(folder.iterdir())):
        raise InputError(
            f"--demo-folder: '{folder}' is not empty and was not made by the demo: "
            "choose another folder."
        )
    try:
        if is_own:
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _MARK).touch()
        (folder / "numerai.toml").write_text(_TOML, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--demo-folder: '{folder}': {error.strerror}.") from error
    config, workspace = load(folder / "numerai.toml")
    (model,) = config.models
    data = write_demo_data(workspace)
    typer.echo(
        f"Made up data in Numerai's layout: {workspace.data_dir}\n"
        f"{len(data.stable_features)} features say a little about the target in every "
        f"era; {len(data.unstable_features)} say more, in some of the training eras, "
        "and the opposite later."
    )
    with terminal() as told:
        steps.train_model(workspace, model, told)
        steps.predict_model(config, workspace, model, 1, told)
        steps.validate_model(config, workspace, model, told)
        steps.export_model(workspace, model, told)
    folder = workspace.model_dir(model.name)
    blends = {
        "demo": load_blend(folder, model)[0],
        "gain": load_blend(folder / GAIN, model)[0],
    }
    _show_live_scores(blends, data, model.train.target)
    typer.echo("Nothing was uploaded (--demo).")


def _show_live_scores(
    blends: "dict[str, Blend]", data: "DemoData", target: str
) -> None:
    """Print what became of the eras after the live one, which nobody could know."""
    import numpy as np

    from sklearn_era.metrics import aggregate_era_scores
    from sklearn_era.numerai.data import read_columns
    from sklearn_era.numerai.metrics import numerai_corr

    frame = read_columns(data.future, None)
    eras, targets = frame["era"].to_numpy(), frame[target].to_numpy()
    table = Table(title="The live eras, as they turned out")
    for heading in ("Model", "CORR mean", "std", "sharpe", "eras"):
        table.add_column(heading, justify="left" if heading == "Model" else "right")
    for name, blend in blends.items():
        block = frame[blend.features].to_numpy()
        parts = blend.predict(block, blend.features)
        ranks = np.empty(len(frame))
        for era in np.unique(eras):
            rows = eras == era
            ranks[rows] = blend.combine([part[rows] for part in parts])
        corr = numerai_corr(ranks, targets, eras)
        cells = (aggregate_era_scores(corr, x) for x in ("mean", "std", "sharpe"))
        table.add_row(name, *(f"{x:.4f}" for x in cells), f"{len(np.unique(eras))}")
    print_table(table)
    typer.echo(
        "The data were made to show this difference; whether yours do is for the "
        "validation report to say."
    )
