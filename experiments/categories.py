"""Columns of many categories: native, by scikit-learn's TargetEncoder, and by era.

The protocol, written before anything was measured but for the choice of the encoder's
columns, which was made with the plain booster on the time sets at 5,000 rows, by splits
of the same kind.

Sets in time: eras in order; test eras are the last tenth of them (at least one), those
before it, and those before these: three splits, each trained on all eras before its
test. Sets of groups: the first three of five folds of whole eras, shuffled by seed 0.
Once with at most 5,000 training rows, drawn at random by the split's number as seed,
and once with all rows, of the first split (the last eras) alone. The score is R2, or
the area under the ROC curve, over all test rows. Texts are categories, to all models.

- booster: the plain one of this package, of 100 trees, categories native, which are
  grouped by eras where there are more than 255; the same
  beside ``EraTargetEncoder(count=True)``; beside scikit-learn's TargetEncoder, in five
  folds of whole eras where its version takes groups (1.9), else of rows; and beside the
  number of the era, as a control, since counts tell late eras, too.
- AutoEra with and without encoded columns, all else as by default.
- CatBoost, and with ``has_time=True``, and LightGBM: their own learning rate and
  categories native, 1,000 trees at most, stopped after 50 without gain on the last
  fifth of the training eras (of groups, on a fifth drawn by seed 0), then fitted to all
  training rows with the number of trees and the learning rate that were found.

One thread, seeds 0, no other parameter. Each figure is reported, whatever it is.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import TargetEncoder

from experiments.common import (
    bars,
    find_data_file,
    kind_of,
    measure_cells,
    parts_of,
    respond,
    summarize,
)
from sklearn_era import auto, ensemble
from sklearn_era._optional import import_optional
from sklearn_era.preprocessing import EraTargetEncoder

TITLE = "Categories: R2 or AUC in eras that no model was trained on"
N_RUNS = 3
IN_TIME = (
    *("tourism", "retail_turnover", "prescriptions", "orange_juice", "mileage"),
    *("english_football", "trade_of_nations", "rain_australia", "power_lifters"),
    "baseball_salaries",
)
SETS = (*IN_TIME, "homes_seattle", "pisa")
DATA_FILES = tuple(f"{name}.parquet" for name in SETS)
N_TRAIN, N_QUICK = 5_000, 300


def split(eras: np.ndarray, in_time: bool, number: int) -> tuple[Any, Any]:
    """Rows to train on and to test of a split, by the protocol."""
    labels = np.unique(eras)
    if in_time:
        size = max(1, labels.size // 10)
        test = labels[labels.size - (number + 1) * size :][:size]
        return np.flatnonzero(eras < test[0]), np.flatnonzero(np.isin(eras, test))
    fold = np.random.default_rng(0).permutation(labels.size) % 5
    is_test = np.isin(eras, labels[fold == number])
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def order_of(eras: np.ndarray) -> str:
    return "unordered" if eras.dtype.kind == "O" else "ordered"


def boost(X: Any, y: Any, eras: Any, X_new: Any, task: str) -> Any:
    """Predictions of the plain booster."""
    kind = kind_of(ensemble, "HistGradientBoosting", task == "binary")
    booster = kind(early_stopping=False, random_state=0)
    return respond(booster.fit(X, y, eras=eras), X_new)


def encoded(X: Any, y: Any, eras: Any, X_new: Any, task: str) -> Any:
    """Those of a booster beside `EraTargetEncoder`."""
    encoder = EraTargetEncoder(target_type=task, era_order=order_of(eras), count=True)
    encoder.set_output(transform="pandas")
    X_more = X.join(encoder.fit_transform(X, y, eras=eras))
    return boost(X_more, y, eras, X_new.join(encoder.transform(X_new)), task)


def numbered(X: Any, y: Any, eras: Any, X_new: Any, task: str) -> Any:
    """Those of a booster beside the number of the era, where eras are in time."""
    if order_of(eras) == "ordered":  # trees take all later eras for the last one
        X, X_new = X.assign(era=eras), X_new.assign(era=eras.max())
    return boost(X, y, eras, X_new, task)


def target_encoded(X: Any, y: Any, eras: Any, X_new: Any, task: str) -> Any:
    """Those of a booster beside scikit-learn's encoder."""
    names = X.columns[X.dtypes == "category"]
    if not names.size:
        return boost(X, y, eras, X_new, task)
    with config_context(enable_metadata_routing=True, transform_output="pandas"):
        try:
            encoder = TargetEncoder(target_type=task, cv=GroupKFold(5))
            more = encoder.fit_transform(X[names], y, groups=eras)
        except TypeError:  # before 1.9
            encoder = TargetEncoder(target_type=task, random_state=0)
            more = encoder.fit_transform(X[names], y)
        of_new = encoder.transform(X_new[names])
    X, X_new = X.join(more.add_suffix("_mean")), X_new.join(of_new.add_suffix("_mean"))
    return boost(X, y, eras, X_new, task)


def average(
    X: Any, y: Any, eras: Any, X_new: Any, task: str, encode: Any = False
) -> Any:
    """Those of AutoEra, perhaps with encoded columns."""
    params = {"encode_categories": encode, "era_order": order_of(eras)}
    model = kind_of(auto, "AutoEra", task == "binary")(random_state=0, **params)
    return respond(model.fit(X, y, eras=eras), X_new)


def peer(
    X: Any, y: Any, eras: Any, X_new: Any, task: str, name: str, **more: Any
) -> Any:
    """Those of CatBoost or LightGBM, stopped early, and fitted to all rows."""
    package = import_optional(name.lower(), extra="test")
    given: dict[str, Any]
    stop: dict[str, Any]
    if name == "LightGBM":
        make = kind_of(package, "LGBM", task == "binary")
        given = {"random_state": 0, "n_jobs": 1, "verbose": -1}
        stop = {"callbacks": [package.early_stopping(50, verbose=False)]}
    else:
        make = kind_of(package, "CatBoost", task == "binary")
        given = {"random_seed": 0, "thread_count": 1, "verbose": 0, **more}
        given |= {"allow_writing_files": False}
        given |= {"cat_features": list(X.columns[X.dtypes == "category"])}
        stop = {"early_stopping_rounds": 50}
    labels = np.unique(eras)
    if order_of(eras) == "unordered":
        labels = np.random.default_rng(0).permutation(labels)
    held = np.isin(eras, labels[-max(1, labels.size // 5) :])
    first = make(n_estimators=1_000, **given)
    first.fit(X[~held], y[~held], eval_set=[(X[held], y[held])], **stop)
    n_trees = first.best_iteration_
    if name == "CatBoost":
        n_trees = first.tree_count_
        given["learning_rate"] = first.get_all_params()["learning_rate"]
    return respond(make(n_estimators=max(1, n_trees), **given).fit(X, y), X_new)


MODELS: dict[str, Callable[..., Any]] = {
    "booster": boost,
    "booster, encoded": encoded,
    "booster, TargetEncoder": target_encoded,
    "booster, era": numbered,
    "LightGBM": partial(peer, name="LightGBM"),
    "CatBoost": partial(peer, name="CatBoost"),
    "CatBoost, has_time": partial(peer, name="CatBoost", has_time=True),
    "AutoEra": average,
    "AutoEra, encoded": partial(average, encode="auto"),
}

draw = bars("set", "model", "size")


def run(
    data_dir: Path | None, n_runs: int, quick: bool, cache: Path | None = None
) -> pd.DataFrame:
    """`quick` has one set, and boosters."""
    paths = {name: find_data_file(f"{name}.parquet", data_dir) for name in SETS}
    sizes = [N_QUICK] if quick else [N_TRAIN, 0]
    models = list(MODELS)[: 4 if quick else None]
    cells = (
        {"set": name, "size": size, "model": model, "run": number}
        for size, model, name in product(sizes, models, SETS[: 1 if quick else None])
        for number in range(n_runs if size else 1)
    )
    rows = measure_cells(_measure, cells, cache=cache, paths=paths)
    return summarize(rows, by=["set", "size", "model"])


def _measure(
    set: str, size: int, model: str, run: int, paths: dict[str, Path]
) -> list[dict]:
    """The score of a model, and the seconds that it took; a size of 0 is all rows."""
    X, y, eras = parts_of(pd.read_parquet(paths[set]))
    train, test = split(eras, set in IN_TIME, run)
    if size and train.size > size:
        rng = np.random.default_rng(run)
        train = np.sort(rng.choice(train, size, replace=False))
    task = "binary" if {*y} == {0, 1} else "continuous"
    start = time.perf_counter()
    p = MODELS[model](X.iloc[train], y[train], eras[train], X.iloc[test], task)
    score = roc_auc_score if task == "binary" else r2_score
    return [{"value": score(y[test], p), "seconds": time.perf_counter() - start}]
