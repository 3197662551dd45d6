"""Run a round on made-up data in Numerai's layout: ``numerai run --demo``."""

import shutil
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from sklearn_era.cli._ui import InputError, number, print_table
from sklearn_era.datasets import make_numerai_like
from sklearn_era.numerai.config import ValidateSection, Workspace
from sklearn_era.numerai.data import META_MODEL_COLUMN, read_columns
from sklearn_era.numerai.files import replacing, write_json
from sklearn_era.numerai.metrics import numerai_corr, rank_normalize
from sklearn_era.numerai.steps import Steps
from sklearn_era.numerai.store import load_blend
from sklearn_era.numerai.validation import GAIN

DEMO_TARGETS = ("target_amber_20", "target_birch_20")
_TARGETS = (*DEMO_TARGETS, "target_amber_60", "target_birch_60")
_ALIASED = _TARGETS[2]  # by "target": none of the demo's, so that training on it shows

_N_UNKNOWN = {"20": 4, "60": 12}  # newest eras with unknown returns, by horizon
_META_MODEL_DELAY = 4  # eras between the start of validation and of the meta model
_BENCHMARK_NOISE, _META_NOISE = 0.5, 1.0  # in standard deviations of a regression

_Array = NDArray[Any]
_ADJECTIVES = ("agile", "brisk", "calm", "dapper", "eager", "frosty", "gentle", "icy")
_NOUNS = ("anchor", "beacon", "canyon", "delta", "ember", "fjord", "glacier", "inlet")

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
    """Make or replace the demo's folder; return the path of its configuration."""
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


def run_demo(steps: Steps) -> None:
    """Run a made-up round, without upload, then print scores in the eras after it."""
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
    frame, rows = read_columns(data.future, None), []
    folder = steps.workspace.model_dir(model.name)
    targets = frame[model.train.target]
    for name, place in (("demo", folder), ("gain", folder / GAIN)):
        blend, _ = load_blend(place, model)
        ranks = [blend.ranks(era) for _, era in frame.groupby("era")]
        corr = numerai_corr(targets, np.concatenate(ranks), eras=frame["era"])
        cells = (corr.aggregate(x) for x in ("mean", "std", "sharpe"))
        rows.append([name, *map(number, cells), str(corr.eras.size)])
    headings = ("Model", "CORR mean", "std", "sharpe", "eras")
    print_table("The live eras, as they turned out", headings, rows)
    typer.echo("The data were made to show this; for yours, see the validation report.")


class DemoData(NamedTuple):
    """The paths of files and of the later eras (`future`), and the names of features
    whose effects last (`stable_features`) or change sign (`unstable_features`).
    """

    paths: dict[str, Path]
    future: Path
    stable_features: list[str]
    unstable_features: list[str]


def write_demo_data(
    workspace: Workspace, *, n_train_eras: int = 100, n_validation_eras: int = 52,
    n_future_eras: int = 20, rows_per_era: int = 400, n_features: int = 60,
) -> DemoData:  # fmt: skip
    """Write files of round 1, made up by `make_numerai_like`; return their paths."""
    last = n_train_eras + n_validation_eras
    data = make_numerai_like(
        last, rows_per_era, n_features, n_fading_eras=n_validation_eras,
        n_live_eras=1 + n_future_eras, n_targets=len(_TARGETS), random_state=0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    pool = ["_".join(x) for x in product(["feature"], _ADJECTIVES, _ADJECTIVES, _NOUNS)]
    names = rng.choice(pool, n_features, replace=False).tolist()
    parts = [(data[name], data[f"{name}_live"]) for name in ("X", "y", "eras")]
    X, y, eras = map(np.concatenate, parts)
    # 60 bits, so that no two are equal.
    ids = [f"n{number:015x}" for number in rng.integers(2**60, size=eras.size)]
    index = pd.Index(ids, name="id", dtype="str")
    is_live = eras == last + 1
    targets = pd.DataFrame(y, index, _TARGETS)
    for name in _TARGETS:  # the newest returns are unknown
        is_known = (eras <= last - _N_UNKNOWN[name[-2:]]) | (eras > last + 1)
        targets[name] = targets[name].where(is_known)
    targets.insert(0, "target", targets[_ALIASED])
    in_train = eras <= n_train_eras
    in_validation = ~in_train & (eras <= last)
    is_test = in_validation & targets["target"].isna()
    kinds = {"train": in_train, "live": is_live, "test": is_test}
    head = pd.DataFrame({
        "era": np.where(is_live, "X", np.char.zfill(eras.astype(str), 4)),
        "data_type": np.select([*kinds.values()], [*kinds], "validation"),
    }, index, dtype=str)  # fmt: skip
    frame = pd.concat([head, pd.DataFrame(X, index, names), targets], axis=1)
    models = _other_models(X, y, eras, n_train_eras // 2, workspace.version, rng)
    others = pd.concat([head, pd.DataFrame(models, index)], axis=1)
    has_meta = in_validation & (eras > n_train_eras + _META_MODEL_DELAY)
    tables = {
        "train": frame[in_train], "validation": frame[in_validation],
        "live": frame[is_live], "future": frame[eras > last + 1],
        "meta_model": others.loc[has_meta, [*head, META_MODEL_COLUMN]],
    }  # fmt: skip
    for part, rows in (("validation", in_validation), ("live", is_live)):
        benchmarks = [*others.columns[-len(_TARGETS) :]]
        tables[f"{part}_benchmark_models"] = others.loc[rows, ["era", *benchmarks]]
        tables[f"{part}_example_preds"] = others.loc[rows, ["prediction"]]
    paths = {name: workspace.data_file(name, 1) for name in (*tables, "features")}
    for name, table in tables.items():
        with replacing(paths[name]) as partial:
            table.to_parquet(partial)
    sets = {
        "small": names[: n_features // 5], "medium": names[: n_features // 2],
        "all": names, "fncv3_features": names[n_features // 4 : 3 * n_features // 4],
    }  # fmt: skip
    write_json(paths["features"], {"feature_sets": sets, "targets": [*targets]})
    lasting = [names[j] for j in data.stable_features]
    fading = [names[j] for j in data.unstable_features]
    return DemoData(paths, paths.pop("future"), lasting, fading)


def _other_models(
    X: _Array, y: _Array, eras: _Array, last_seen: int, version: str, rng: Any
) -> dict[str, _Array]:
    """Return a dict from names to made-up predictions, as ranks by era: of the example,
    of the meta model, and then of the benchmarks.
    """
    seen, models = eras <= last_seen, {}
    fits = np.linalg.lstsq(X[seen] - 2.0, y[seen] - 0.5)[0].T
    wanted = [("prediction", fits[0], 0.0), (META_MODEL_COLUMN, fits[0], _META_NOISE)]
    for target, fit in zip(_TARGETS, fits, strict=True):
        name = ValidateSection().benchmark_of(version, target)
        wanted += [(name, fit, _BENCHMARK_NOISE)]
    for name, fit, noise in wanted:
        values = X @ fit
        drawn = noise * values.std() * rng.standard_normal(values.size)
        models[name] = rank_normalize(values + drawn, eras=eras)
    return models
