"""``sklearn-era numerai run --demo``: a round on synthetic data."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sklearn_era.cli._ui import InputError, number, print_table

if TYPE_CHECKING:
    from sklearn_era.numerai.config import Model
    from sklearn_era.numerai.steps import Steps

# Marks a folder as the demo's own, which is replaced.
_MARK = ".sklearn-era-demo"
# Fewer, faster trees than for Numerai's own data, which have a hundred times the rows.
_TOML = """\
# Configuration of the demo; 'sklearn-era numerai init' writes one for real data.
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
# The model is judged on the eras of the validation file.
files = ["train"]

[train.parameters]
# The data are made for it: lasting effects have the same direction in all eras.
split_criterion__min_agreement = 0.4
min_era_coverage = 0.5
max_iter = 100
learning_rate = 0.05
colsample_bytree = 0.2

[validate]
compare_with_gain = true
"""


def make_folder(folder: Path) -> Path:
    """Make or replace the demo's folder; return its configuration."""
    is_own = (folder / _MARK).is_file()
    if folder.exists() and not is_own and any(folder.iterdir()):
        text = f"--demo-folder: '{folder}' is not empty and was not made by the demo"
        raise InputError(f"{text}: choose another folder.")
    config = folder / "numerai.toml"
    try:
        if is_own:
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _MARK).touch()
        config.write_text(_TOML, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--demo-folder: '{folder}': {error.strerror}.") from error
    return config


def run_demo(steps: "Steps") -> None:
    """Run a round without download and upload."""
    from sklearn_era.numerai.demo import write_demo_data

    data, (model,) = write_demo_data(steps.workspace), steps.config.models
    typer.echo(
        f"Made up data in Numerai's layout: {steps.workspace.data_dir}\n"
        f"{len(data.stable_features)} features predict the target a little in "
        f"every era; {len(data.unstable_features)} predict it better in some "
        "training eras, and the opposite later."
    )
    steps.train(model)
    steps.predict(model, 1)
    steps.validate(model)
    steps.export(model)
    _show_live_scores(steps.workspace.model_dir(model.name), model, data.future)


def _show_live_scores(folder: Path, model: "Model", future: Path) -> None:
    """Print the scores on the eras after the live one."""
    import numpy as np

    from sklearn_era.numerai.blend import load_blend
    from sklearn_era.numerai.data import read_columns
    from sklearn_era.numerai.metrics import numerai_corr
    from sklearn_era.numerai.validation import GAIN

    frame, rows = read_columns(future, None), []
    targets, eras = frame[model.train.target].to_numpy(), frame["era"].to_numpy()
    for name, place in (("demo", folder), ("gain", folder / GAIN)):
        blend, _ = load_blend(place, model)
        blocks = (era[blend.features].to_numpy() for _, era in frame.groupby("era"))
        ranks = [blend.ranks(block, blend.features) for block in blocks]
        corr = numerai_corr(targets, np.concatenate(ranks), eras=eras)
        cells = (corr.aggregate(x) for x in ("mean", "std", "sharpe"))
        rows.append([name, *map(number, cells), str(len(np.unique(eras)))])
    headings = ("Model", "CORR mean", "std", "sharpe", "eras")
    print_table("The live eras, as they turned out", headings, rows)
    typer.echo("The data were made to show this; for yours, see the validation report.")
