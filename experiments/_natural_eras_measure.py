"""Fits, scores and statistics of the benchmark of natural eras."""

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import has_fit_parameter

from experiments._natural_eras_data import Scenario, Table, Task
from experiments.common import ExperimentError, seed_of, summarize
from sklearn_era.effects import Recency
from sklearn_era.model_selection import EraWalkForwardSplit

Rows = NDArray[np.intp]
# From the task and a seed to an estimator; `fit` gets the eras where it takes them.
Factory = Callable[[Task, int], Any]

# What all are compared with, and the rows of the table over all scenarios: those that
# defaults were chosen on, and fresh ones.
REFERENCE = "gain"
ALL = "all scenarios"
ALL_FRESH = "all fresh scenarios"
SCORES = ("score", "worst_era_score")

_KEY = itemgetter("scenario", "split", "run", "model")

MOST_ROWS_TO_TRAIN = 5_000
# Of an era, for a score of its own: rows, and rows of each class.
_LEAST_ROWS = 30
_LEAST_ROWS_OF_CLASS = 5


def splits(scenario: Scenario, eras: NDArray[np.int64]) -> Iterator[tuple[Rows, Rows]]:
    """Rows to train and to test on: later eras, or groups of eras that are left out.

    In time the last eras are tested, in blocks one after the other, each by a model of
    all eras before the block.
    """
    if scenario.kind == "groups":
        yield from GroupKFold(scenario.n_splits).split(eras, groups=eras)
        return
    n_eras = len(np.unique(eras))
    size = max(1, n_eras // (2 * scenario.n_splits))
    walk = EraWalkForwardSplit(scenario.n_splits, test_size=size)
    yield from walk.split(eras, groups=eras)


def thinned(rows: Rows, eras: NDArray[np.int64], most: int, seed: int) -> Rows:
    """About as many of the rows as `most`, the same share of each era, in order."""
    if rows.size <= most:
        return rows
    rng = np.random.default_rng(seed)
    parts = [rng.permutation(rows[eras[rows] == era]) for era in np.unique(eras[rows])]
    share = most / rows.size
    kept = [part[: int(np.ceil(share * part.size))] for part in parts]
    return np.sort(np.concatenate(kept))


def score_rows(
    task: Task, y: NDArray[np.float64], predicted: NDArray[np.float64]
) -> float:
    """R² or the area under the ROC curve; NaN for too few rows of a class."""
    if len(y) < _LEAST_ROWS:
        return float("nan")
    if task == "regression":
        return float(r2_score(y, predicted))
    counts = np.bincount(y.astype(np.intp), minlength=2)
    if counts.min() < _LEAST_ROWS_OF_CLASS:
        return float("nan")
    return float(roc_auc_score(y, predicted))


def measure(
    scenarios: Mapping[str, Scenario],
    models: Mapping[str, Factory],
    *,
    data_dir: Path | None,
    n_runs: int = 1,
    quick: bool = False,
    cache: Path | None = None,
) -> pd.DataFrame:
    """Score each model on each split of each scenario.

    Parameters
    ----------
    scenarios, models : mapping
        By their names in the table. A model's half-life of `Recency` is in shares of
        the eras that it is trained on.
    data_dir : Path or None
        The folder of the data files. A scenario that lacks its file or its package is
        left out, and standard error says so.
    n_runs : int, default=1
        Seeds, of the rows to train on and of the forests.
    quick : bool, default=False
        Whether to take few rows and two splits.
    cache : Path, default=None
        A CSV of scores that need not be measured again, such as those of an earlier
        list of models; what is measured is added to it.

    Returns
    -------
    scores : DataFrame
        Columns scenario, split, run, model, score, worst_era_score and fit_seconds.
    """
    done: dict[tuple, dict] = {}
    if cache is not None and cache.is_file():
        done = {_KEY(row): row for row in pd.read_csv(cache).to_dict("records")}
    rows: list[dict] = []
    for name, scenario in scenarios.items():
        n_splits = 2 if quick else scenario.n_splits
        wanted = [
            {"scenario": name, "split": split, "run": run, "model": model}
            for split in range(n_splits)
            for run in range(n_runs)
            for model in models
        ]
        if missing := [row for row in wanted if _KEY(row) not in done]:
            try:
                table = scenario.load(data_dir)
            except ExperimentError as error:
                print(f"{name} is left out. {error}", file=sys.stderr)
                continue
            for row in _measure_rows(scenario, table, models, missing, quick):
                done[_KEY(row)] = row
            if cache is not None:
                pd.DataFrame(done.values()).to_csv(cache, index=False)
        rows += [done[_KEY(row)] for row in wanted]
    return pd.DataFrame(rows)


def _measure_rows(
    scenario: Scenario,
    table: Table,
    models: Mapping[str, Factory],
    wanted: list[dict],
    quick: bool,
) -> Iterator[dict]:
    """Each of the rows that are wanted, with its scores."""
    X, y, eras = table
    parts = list(splits(scenario, eras))
    # The numbers of groups have no order.
    is_of_groups = scenario.kind == "groups"
    labels = eras.astype(str) if is_of_groups else eras
    most = 1_000 if quick else MOST_ROWS_TO_TRAIN
    for row in wanted:
        train, test = parts[row["split"]]
        seed = seed_of("natural eras", row["scenario"], row["split"], row["run"])
        train = thinned(train, eras, most, seed)
        estimator = models[row["model"]](scenario.task, seed)
        _adapt(estimator, labels[train], is_of_groups)
        knows_eras = has_fit_parameter(estimator, "eras")
        start = time.perf_counter()
        estimator.fit(
            X[train], y[train], **{"eras": labels[train]} if knows_eras else {}
        )
        seconds = time.perf_counter() - start
        if scenario.task == "regression":
            predicted = estimator.predict(X[test])
        else:
            predicted = estimator.predict_proba(X[test])[:, 1]
        of_eras = [
            score_rows(scenario.task, y[test][rows], predicted[rows])
            for rows in (eras[test] == era for era in np.unique(eras[test]))
        ]
        yield {
            **row,
            "score": score_rows(scenario.task, y[test], predicted),
            "worst_era_score": np.nanmin(of_eras),
            "fit_seconds": seconds,
        }


def _adapt(estimator: Any, eras: NDArray[Any], is_of_groups: bool) -> None:
    """Set what depends on the eras: whether they have an order, and half-lives."""
    parameters = estimator.get_params(deep=False)
    weighting, effects = map(parameters.get, ("era_weighting", "era_effects"))
    if is_of_groups and "era_order" in parameters:
        # Where groups without an order are told to have one, it is that of their names.
        needs_order = isinstance(weighting, Recency) or effects is not None
        estimator.set_params(era_order="ordered" if needs_order else "unordered")
    if isinstance(weighting, Recency):
        half_life = weighting.half_life * np.unique(eras).size
        estimator.set_params(era_weighting__half_life=half_life)


def compare(scores: pd.DataFrame, fresh: Collection[str] = ()) -> pd.DataFrame:
    """Differences of each model to `REFERENCE`, split by split.

    Parameters
    ----------
    scores : DataFrame
        What `measure` gives.
    fresh : collection of str, default=()
        Scenarios to take apart from the others.

    Returns
    -------
    table : DataFrame
        A row for each of `SCORES`, scenario and model: the number of splits, the mean
        and the standard deviation of the differences, the standard error of their mean,
        the model's mean score in `level`, and the mean of its seconds to fit. In the
        rows of `ALL` and of `ALL_FRESH` the same over the means of scenarios.
    """
    known = ["scenario", "split", "model", "fit_seconds"]
    rows = scores.melt(known, list(SCORES), var_name="score", value_name="level")
    by, split = ["score", "scenario", "model"], ["score", "scenario", "split"]
    # Runs of a split are no further splits.
    rows = rows.groupby([*split, "model"], sort=False).mean().reset_index()
    reference = rows[rows["model"] == REFERENCE].set_index(split)["level"]
    rows = rows.join(reference.rename("reference"), on=split)
    rows["difference"] = rows["level"] - rows["reference"]
    table = _summarize(rows, by)
    part = np.where(table["scenario"].isin(fresh), ALL_FRESH, ALL)
    over_all = table.assign(difference=table["mean"], scenario=part)
    return pd.concat([table, _summarize(over_all, by)], ignore_index=True)


def _summarize(differences: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    table = summarize(differences, by=by, value="difference")
    table["se"] = table["std"] / np.sqrt(table["n_runs"])
    means = differences.groupby(by, sort=False)[["level", "fit_seconds"]].mean()
    return table.merge(means.reset_index(), on=by)


def signs(table: pd.DataFrame, kind: str) -> pd.Series:
    """By model, in how many scenarios it is ahead and behind by more than 2 s.e."""
    is_one = ~table["scenario"].isin([ALL, ALL_FRESH])
    rows = table[(table["score"] == kind) & is_one]
    margins = rows["mean"] / rows["se"]
    return margins.groupby(rows["model"], sort=False).agg(
        lambda values: f"{(values > 2).sum()} / {(values < -2).sum()}"
    )
