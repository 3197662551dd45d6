"""The protocol of Moneda (2021), section 6.1, for a table whose rows have a year.

Rows of the years in time are split into training (80 %) and test, those of the years
after them are the holdout. Limits are chosen by five folds, as
docs/papers/time-robust-forest.md describes, or by the worst of the years in time, each
of which is left out once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    LeaveOneGroupOut,
    RandomizedSearchCV,
    StratifiedKFold,
    train_test_split,
)
from sklearn.preprocessing import OrdinalEncoder

from experiments.common import RULE_OF_PAPERS, fit_by_eras, rows_of, seed_of, summarize
from sklearn_era.criteria import TimeRobust
from sklearn_era.ensemble import EraForestClassifier
from sklearn_era.inspection import domain_classifier_auc, support_match
from sklearn_era.model_selection import EraSearchCV

_MOST_BINS = 255
RANDOM_FOREST = "random forest"
GAIN = "gain, its rows a leaf"
MEAN = "time robust, mean"
WORST = "time robust, max"
MODELS = (RANDOM_FOREST, GAIN, MEAN, WORST)

BY_FOLDS = "random forest's, by folds"
BY_YEARS = "by its worst year left out"

# As the ranges of the tool that the thesis tuned by, but for the number of trees.
TUNED: Mapping[str, Any] = {
    "bootstrap": (True, False),
    "class_weight": ("balanced", "balanced_subsample", None),
    "criterion": ("gini", "entropy"),
    "max_depth": range(1, 12),
    "max_features": (1.0, "sqrt", "log2"),
    "min_impurity_decrease": (0.0, 0.0001, 0.0005, 0.001, 0.005, 0.01),
    "min_samples_leaf": (2, 3, 4, 5, 6),
    "min_samples_split": (2, 5, 7, 9, 10),
}
N_TUNED = 20

# The candidates of the second part: depth, and rows of a year.
DEPTHS = (4, 8, 11)
ROWS = (2, 15, 100)

N_TREES = 100
# The searches compare limits, for which fewer trees will do.
N_TREES_OF_SEARCH = 30

PARTS = ("train", "test", "holdout")
TOOLS = ("domain classifier", "support match")

# More rows would only make the searches slow.
_MOST_ROWS_OF_SEARCH = 6_000
_N_FOLDS = 5
_FROM = "holdout, trained from "


class YearTable(NamedTuple):
    """Rows with a year, those in time, for training or test, and those of the holdout.
    Categories are their places in alphabetical order, as in the thesis.
    """

    X: pd.DataFrame
    y: NDArray[np.int64]
    years: NDArray[np.int64]
    is_in_time: NDArray[np.bool_]
    categories: list[str]


def make_year_table(
    numbers: pd.DataFrame,
    categories: pd.DataFrame,
    y: pd.Series,
    years: pd.Series,
    last_year_in_time: int,
) -> YearTable:
    """Encode a table as the thesis does; later years are the holdout."""
    codes = OrdinalEncoder().set_output(transform="pandas")
    X = numbers.join(codes.fit_transform(categories.fillna("None").astype(str)))
    return YearTable(
        X.astype(np.float64).reset_index(drop=True),
        y.to_numpy(dtype=np.int64),
        years.to_numpy(dtype=np.int64),
        (years <= last_year_in_time).to_numpy(),
        [*categories.columns],
    )


def paper_of(
    random_forest: Sequence[float], robust: Sequence[float], tools: Sequence[float]
) -> dict[tuple[str, str, str], float]:
    """The thesis' numbers: of both forests, by part, and of the two tools."""
    rows = {(BY_FOLDS, RANDOM_FOREST): random_forest, (BY_FOLDS, MEAN): robust}
    paper = {
        (*row, part): value
        for row, values in rows.items()
        for part, value in zip(PARTS, values, strict=True)
    }
    return paper | {("", "", x): value for x, value in zip(TOOLS, tools, strict=True)}


def measure_years(
    table: YearTable, n_runs: int, quick: bool, paper: Mapping[Any, float]
) -> pd.DataFrame:
    """Fit all forests, and look at the data with the thesis' tools. Each run has a
    split into training and test of its own, of which all else is drawn.
    """
    rows: list[dict] = []
    tools: list[dict] = []
    for number in range(n_runs):
        parts = _split(table, number, quick)
        for chosen, model, forest in _forests(table, parts["train"], number, quick):
            aucs = _aucs(forest, table, parts)
            if chosen == BY_FOLDS and model in (RANDOM_FOREST, MEAN):
                aucs |= _aucs_from_year(forest, table, parts)
            rows += rows_of(aucs, "part", chosen=chosen, model=model, run=number)
        found = _apply_tools(table, parts)
        tools += rows_of(found, "part", chosen="", model="", run=number)
    by = ["chosen", "model", "part"]
    return summarize(pd.DataFrame(rows + tools), by=by, paper=paper)


def _split(table: YearTable, number: int, quick: bool) -> dict[str, NDArray[np.int64]]:
    """The places of the rows for training, test and holdout."""
    in_time = np.flatnonzero(table.is_in_time)
    train, test = train_test_split(
        in_time, test_size=0.2, random_state=seed_of("split", number)
    )
    holdout = np.flatnonzero(~table.is_in_time)
    if quick:
        train, holdout = train[:1500], holdout[::10]
    return dict(zip(PARTS, (train, test, holdout), strict=True))


def _aucs(
    forest: Any, table: YearTable, parts: dict[str, NDArray[np.int64]]
) -> dict[str, float]:
    """Fit to the training rows; the area under the curve in each part."""
    train = parts["train"]
    fit_by_eras(forest, table.X.loc[train], table.y[train], table.years[train])
    score = get_scorer("roc_auc")
    return {
        part: score(forest, table.X.loc[rows], table.y[rows])
        for part, rows in parts.items()
    }


def _aucs_from_year(
    forest: Any, table: YearTable, parts: dict[str, NDArray[np.int64]]
) -> dict[str, float]:
    """The area under the curve in the holdout, trained on the latest years only."""
    years = table.years[parts["train"]]
    aucs = {}
    for oldest in np.unique(years)[::-1]:
        train = parts["train"][years >= oldest]
        latest = {"train": train, "holdout": parts["holdout"]}
        aucs[f"{_FROM}{oldest}"] = _aucs(clone(forest), table, latest)["holdout"]
    return aucs


def _apply_tools(
    table: YearTable, parts: dict[str, NDArray[np.int64]]
) -> dict[str, float]:
    """How well a classifier separates holdout and training rows, and what years share.
    Columns of more categories than bins count as numbers.
    """
    train = table.X.loc[parts["train"]]
    rows = pd.concat([train, table.X.loc[parts["holdout"]]])
    few = [name for name in table.categories if rows[name].nunique() <= _MOST_BINS]
    auc = domain_classifier_auc(
        rows,
        np.arange(len(rows)) >= len(train),
        estimator=HistGradientBoostingClassifier(
            categorical_features=few, early_stopping=False
        ),
        random_state=0,
    )
    match = support_match(
        train, eras=table.years[parts["train"]], categorical_features=table.categories
    )
    return dict(zip(TOOLS, (auc, match.mean), strict=True))


def make_forest(
    model: str, n_years: int, depth: int, rows: int, n_trees: int, seed: int
) -> Any:
    """A forest of the given depth that leaves `rows` of each year on both sides. Those
    that know no years leave as many rows in all. Each split looks at the root of the
    number of features, as in scikit-learn and in the thesis' package.
    """
    shared: dict[str, Any] = {
        "n_estimators": n_trees,
        "max_depth": depth,
        "max_features": "sqrt",
        "n_jobs": -1,
        "random_state": seed,
    }
    if model == RANDOM_FOREST:
        return RandomForestClassifier(min_samples_leaf=n_years * rows, **shared)
    if model == GAIN:
        return EraForestClassifier(min_samples_leaf=n_years * rows, **shared)
    return EraForestClassifier(
        split_criterion=TimeRobust(aggregation="mean" if model == MEAN else "max"),
        min_samples_leaf=1,
        min_samples_per_era=rows,
        **RULE_OF_PAPERS,
        **shared,
    )


def _forests(
    table: YearTable, train: NDArray[np.int64], seed: int, quick: bool
) -> Iterator[tuple[str, str, Any]]:
    """All forests of a run, by the way of choosing and the model."""
    n_trees, n_of_search = (5, 5) if quick else (N_TREES, N_TREES_OF_SEARCH)
    rows = train
    if rows.size > _MOST_ROWS_OF_SEARCH:
        rng = np.random.default_rng(seed_of("rows of search", seed))
        rows = rng.choice(rows, _MOST_ROWS_OF_SEARCH, replace=False)
    X, y, years = table.X.loc[rows], table.y[rows], table.years[rows]
    n_years = np.unique(table.years[train]).size
    forest = RandomForestClassifier(n_of_search, n_jobs=-1, random_state=seed)
    tuned = RandomizedSearchCV(
        forest,
        TUNED,
        n_iter=2 if quick else N_TUNED,
        scoring="roc_auc",
        cv=StratifiedKFold(_N_FOLDS, shuffle=True, random_state=0),
        refit=False,
        random_state=seed_of("candidates", seed),
    ).fit(X, y)
    best = tuned.best_params_
    yield BY_FOLDS, RANDOM_FOREST, forest.set_params(n_estimators=n_trees, **best)
    limits = best["max_depth"], best["min_samples_leaf"]
    for model in (GAIN, MEAN, WORST):
        yield BY_FOLDS, model, make_forest(model, n_years, *limits, n_trees, seed)
    depths, rows_of_year = (DEPTHS[:2], ROWS[:1]) if quick else (DEPTHS, ROWS)
    for model in MODELS:
        grid: dict[str, Any] = {"max_depth": depths}
        if model in (MEAN, WORST):
            grid["min_samples_per_era"] = rows_of_year
        else:
            grid["min_samples_leaf"] = [n_years * rows for rows in rows_of_year]
        search = EraSearchCV(
            make_forest(model, n_years, DEPTHS[0], ROWS[0], n_of_search, seed),
            grid,
            scoring="roc_auc",
            cv=LeaveOneGroupOut(),
            rule="best",
            choose_by="worst",
        ).fit(X, y, eras=years)
        yield BY_YEARS, model, search.best_estimator_.set_params(n_estimators=n_trees)
