"""Fits, scores and statistics of the benchmark of natural eras."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold

from experiments._natural_eras_controls import losses
from experiments._natural_eras_data import Scenario, Table, Task
from experiments.common import fit_by_eras, measure_cells, respond, seed_of, summarize
from sklearn_era._era_routing import prepares_by_era, routed, with_eras
from sklearn_era.effects import Recency
from sklearn_era.model_selection import EraWalkForwardSplit

Rows = NDArray[np.intp]
# From the task and a seed to an estimator, or None, which leaves the task out; `fit`
# gets the eras where it takes them.
Factory = Callable[[Task, int], Any]

# The model that all are compared with by default, and the rows of the table over all
# scenarios: those that defaults were chosen on, and fresh ones.
REFERENCE = "gain"
ALL = "all scenarios"
ALL_FRESH = "all fresh scenarios"
# Losses are compared by the logarithms of their ratios.
LOSS = "loss"
SCORES = ("score", "worst_era_score", LOSS)

# Least rows of an era, and of each class, for a score of its own.
_LEAST_ROWS = 30
_LEAST_ROWS_OF_CLASS = 5


def splits(scenario: Scenario, eras: NDArray[np.int64]) -> Iterator[tuple[Rows, Rows]]:
    """Rows to train and to test on: later eras, or groups of eras that are left out. In
    time the last eras are tested, in blocks one after the other, each by a model of all
    eras before the block.
    """
    if scenario.kind == "groups":
        yield from GroupKFold(scenario.n_splits).split(eras, groups=eras)
        return
    n_eras = len(np.unique(eras))
    size = max(1, n_eras // (2 * scenario.n_splits))
    walk = EraWalkForwardSplit(scenario.n_splits, test_size=size)
    yield from walk.split(eras, groups=eras)


def thinned(rows: Rows, eras: NDArray[np.int64], most: int | None, seed: int) -> Rows:
    """About as many of the rows as `most`, the same share of each era, in order."""
    if most is None or rows.size <= most:
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
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Score each model on each split of each scenario, each fit in one thread. A
    model's half-life of `Recency` is in shares of the eras that it is trained on. The
    loss is the mean squared error or the log loss, the seconds the processor's.
    """
    cells = (
        {"scenario": name, "split": split, "run": run, "model": model, "quick": quick}
        for name, scenario in scenarios.items()
        for split in range(2 if quick else scenario.n_splits)
        for run in range(n_runs)
        for model in models
        if models[model](scenario.task, 0) is not None
    )
    given = {"scenarios": scenarios, "models": models, "data_dir": data_dir}
    return measure_cells(_measure, cells, cache=cache, n_jobs=n_jobs, **given)


@lru_cache(maxsize=1)
def load(scenario: Scenario, data_dir: Path | None) -> Table:
    """A table, which is read once for all that is measured of it in a row."""
    return scenario.load(data_dir)


def _measure(
    scenario: str,
    split: int,
    run: int,
    model: str,
    quick: bool,
    scenarios: Mapping[str, Scenario],
    models: Mapping[str, Factory],
    data_dir: Path | None,
) -> list[dict]:
    """The scores of a model in a split."""
    source, seed = scenarios[scenario], seed_of("natural eras", scenario, split, run)
    rows = Split(source, split, data_dir, seed, 1_000 if quick else source.most_rows)
    estimator = models[model](source.task, seed)
    prepares = prepares_by_era(estimator)
    start = time.process_time()
    rows.fit(estimator, rows.train)
    seconds = time.process_time() - start
    if prepares:
        estimator = with_eras(estimator, rows.labels[rows.test])
    y, eras = rows.y[rows.test], rows.eras[rows.test]
    predicted = respond(estimator, rows.X[rows.test])
    of_eras = [
        score_rows(source.task, y[eras == era], predicted[eras == era])
        for era in np.unique(eras)
    ]
    scores = {
        "score": score_rows(source.task, y, predicted),
        "worst_era_score": np.nanmin(of_eras),
        LOSS: losses(source.task, y, predicted).mean(),
        "fit_seconds": seconds,
    }
    return [scores]


class Split:
    """A split of a scenario: its table, and the rows to train on and to test."""

    def __init__(
        self,
        scenario: Scenario,
        number: int,
        data_dir: Path | None,
        seed: int,
        most_rows: int | None,
    ) -> None:
        self.X, self.y, self.eras, self.categories = load(scenario, data_dir)
        self.task, self.is_of_groups = scenario.task, scenario.kind == "groups"
        train, self.test = list(splits(scenario, self.eras))[number]
        self.train = thinned(train, self.eras, most_rows, seed)
        # The numbers of groups have no order.
        self.labels = self.eras.astype(str) if self.is_of_groups else self.eras

    def fit(self, model: Any, rows: Rows) -> Any:
        """Fit to some rows a model that is made for the table."""
        labels = self.labels[rows]
        _adapt(model, labels, self.is_of_groups, self.categories)
        with routed(model):
            if prepares_by_era(model):
                return model.fit(self.X[rows], self.y[rows], eras=labels)
            return fit_by_eras(model, self.X[rows], self.y[rows], labels)


def _adapt(
    estimator: Any, eras: NDArray[Any], is_of_groups: bool, categories: tuple[int, ...]
) -> None:
    """Set what depends on the table: categories, the order of eras, and half-lives."""
    parameters = estimator.get_params(deep=False)
    weighting, effects = map(parameters.get, ("era_weighting", "era_effects"))
    inner = parameters.get("estimator")
    if hasattr(inner, "categories"):
        estimator.set_params(estimator__categories=categories)
    elif hasattr(inner, "categorical_features"):
        estimator.set_params(estimator__categorical_features=[*categories])
    elif "categorical_features" in parameters:
        estimator.set_params(categorical_features=[*categories])
    if is_of_groups and "era_order" in parameters:
        # Groups without an order have that of their names where one is needed.
        needs_order = isinstance(weighting, Recency) or effects is not None
        estimator.set_params(era_order="ordered" if needs_order else "unordered")
    if isinstance(weighting, Recency):
        half_life = weighting.half_life * np.unique(eras).size
        estimator.set_params(era_weighting__half_life=half_life)


def compare(
    scores: pd.DataFrame,
    parts: Mapping[str, Collection[str]] | None = None,
    *,
    reference: str = REFERENCE,
) -> pd.DataFrame:
    """Differences of each model to one of them, split by split. Splits without the
    reference are left out. `parts` maps names of groups to their scenarios; all others
    are those of `ALL`. The difference of losses is the logarithm of the reference's by
    the model's, so that more is better for all. Rows in which a part is its own
    scenario are over the means of its scenarios.
    """
    known = ["scenario", "split", "model", "fit_seconds"]
    rows = scores.melt(known, list(SCORES), var_name="score", value_name="level")
    by, split = ["score", "scenario", "model"], ["score", "scenario", "split"]
    # Runs of a split are no further splits.
    rows = rows.groupby([*split, "model"], sort=False).mean().reset_index()
    base = rows[rows["model"] == reference].set_index(split)["level"]
    rows = rows.join(base.rename("base"), on=split, how="inner")
    rows["difference"] = rows["level"] - rows["base"]
    of_loss = rows["score"] == LOSS
    ratios = rows["base"][of_loss] / rows["level"][of_loss]
    rows.loc[of_loss, "difference"] = np.log(ratios)
    table = _summarize(rows, by)
    names = {name: part for part, each in (parts or {}).items() for name in each}
    table["part"] = [names.get(name, ALL) for name in table["scenario"]]
    over_all = table.assign(difference=table["mean"], scenario=table["part"])
    over_all = _summarize(over_all, by)
    over_all["part"] = over_all["scenario"]
    return pd.concat([table, over_all], ignore_index=True).assign(reference=reference)


def _summarize(differences: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    table = summarize(differences, by=by, value="difference")
    table["se"] = table["std"] / np.sqrt(table["n_runs"])
    means = differences.groupby(by, sort=False)[["level", "fit_seconds"]].mean()
    return table.merge(means.reset_index(), on=by)


def tally(table: pd.DataFrame, kind: str) -> pd.DataFrame:
    """How differences of one of `SCORES` are spread over scenarios, by part and model.
    `clearly` is by more than two standard errors, and `p` the probability of such signs
    or of rarer ones, if both were as likely.
    """
    rows = table[(table["score"] == kind) & (table["scenario"] != table["part"])]
    tallies = {}
    for key, each in rows.groupby(["part", "model"], sort=False):
        values, margins = each["mean"], each["mean"] / each["se"]
        ahead, behind = int((values > 0).sum()), int((values < 0).sum())
        tallies[key] = {
            "n": len(each),
            "median": values.median(),
            "mean_but_largest": values.sort_values()[:-1].mean(),
            "ahead": ahead,
            "behind": behind,
            "clearly_ahead": int((margins > 2).sum()),
            "clearly_behind": int((margins < -2).sum()),
            "p": binomtest(ahead, ahead + behind).pvalue if ahead + behind else 1.0,
        }
    frame = pd.DataFrame.from_dict(tallies, orient="index")
    return frame.rename_axis(["part", "model"])
