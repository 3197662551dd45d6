"""Groups of people as eras: after table V of Du et al. (2025).

docs/papers/decision-rules.md has the two questions, and why the paper's numbers cannot
be compared with these. A run trains on its own draw of rows: of the split where all
groups are known, and of 80 % of the other groups' rows where one is left out. Bins of
rules have about as many rows each, since in those of equal width nearly all capital
gains are in one. Group DRO and JTT weigh the rows of the pooled gain's booster. All
other parameters are the defaults, and the column that names the group is no feature.

Accuracies depend on how rare a group's yes is (9 to 27 % in *Adult*), which balanced
accuracies and areas under the ROC curve do not. `minus_gain` is the difference to the
booster of the pooled gain, of the same run.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split

from experiments._du import make_booster, make_rules
from experiments.common import (
    bars,
    find_data_file,
    fit_by_eras,
    respond,
    rows_of,
    seed_of,
    summarize_beside,
)
from sklearn_era.effects import GroupDRO
from sklearn_era.ensemble import JustTrainTwice
from sklearn_era.metrics import era_scores

TITLE = "After Du et al. (2025), table V: Adult by race and Churn by country"
DATA_FILES = ("adult.csv.gz", "churn_modelling.csv.gz")
N_RUNS = 5

CRITERIA = ("gain", "era", "directional", "time_robust", "invariant", "vrex")
NOBODY = "no to everyone"
RULES, VARIANCE = "rules, plain", "rules, variance term"
JTT = "JustTrainTwice"
# Step sizes of group DRO.
DRO: Mapping[str, float] = {"group_dro, 0.1": 0.1, "group_dro, 0.01": 0.01}
MODELS = (*CRITERIA, RULES, VARIANCE, *DRO, JTT, NOBODY)

KNOWN = "all groups known"
LEFT_OUT = "group left out"

ADULT, CHURN = "Adult", "Churn"

# Test accuracies.
PAPER = {
    (model, data, KNOWN, "accuracy"): accuracy
    for model, numbers in {
        VARIANCE: (0.749, 0.749),
        "group_dro, 0.1": (0.781, 0.751),
        JTT: (0.714, 0.772),
    }.items()
    for data, accuracy in zip((ADULT, CHURN), numbers, strict=True)
}

draw = bars("model", "question", "data", measure="worst balanced accuracy")


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has few rows and trees, and all groups known."""
    adult, churn = (find_data_file(name, data_dir) for name in DATA_FILES)
    tables = {ADULT: read_adult(adult), CHURN: read_churn(churn)}
    questions = (KNOWN,) if quick else (KNOWN, LEFT_OUT)
    rows: list[dict] = []
    for data, number, name, question in product(
        tables, range(n_runs), MODELS, questions
    ):
        measures = _measure(name, question, *tables[data], number, quick)
        case = {"model": name, "data": data, "question": question, "run": number}
        rows += rows_of(measures, "measure", **case)
    by = ["model", "data", "question", "measure"]
    runs = pd.DataFrame(rows)
    table = summarize_beside(runs, by=by, reference="gain", paper=PAPER)
    return table.drop(columns="runs")


def read_adult(path: Path) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[Any]]:
    """Features, income above 50,000, and race."""
    frame = pd.read_csv(path, na_values="?")
    return _parts(frame, target=frame["income"] == ">50K", drop=["income"], era="race")


def read_churn(path: Path) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[Any]]:
    """Features, whether the customer has left, and country."""
    frame = pd.read_csv(path)
    drop = ["RowNumber", "CustomerId", "Surname", "Exited"]
    return _parts(frame, target=frame["Exited"] == 1, drop=drop, era="Geography")


def _parts(
    frame: pd.DataFrame, *, target: pd.Series, drop: list[str], era: str
) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[Any]]:
    """Features with categories, the class and the group."""
    X = frame.drop(columns=[*drop, era])
    texts = X.columns[~X.dtypes.map(pd.api.types.is_numeric_dtype)]
    groups = frame[era].to_numpy(dtype=object)
    return X.astype(dict.fromkeys(texts, "category")), target.to_numpy(int), groups


def _make_model(name: str, seed: int, quick: bool) -> Any:
    """A criterion's booster, or what else the name stands for."""
    if name == NOBODY:
        return DummyClassifier(strategy="most_frequent")
    if name in (RULES, VARIANCE):
        penalty = 1.0 if name == VARIANCE else 0.0
        return make_rules(
            seed, quick=quick, binning="quantile", variance_penalty=penalty
        )
    criterion = name if name in CRITERIA else "gain"
    booster = make_booster(quick, criterion, random_state=seed)
    if name in DRO:
        booster.set_params(era_weighting=GroupDRO(step_size=DRO[name]))
    return JustTrainTwice(booster) if name == JTT else booster


def _measure(
    name: str,
    question: str,
    X: pd.DataFrame,
    y: NDArray[np.int64],
    groups: NDArray[Any],
    number: int,
    quick: bool,
) -> dict[str, float]:
    """Fit and test; the accuracies and areas under the curve over groups."""
    predicted = np.full(y.size, np.nan)
    for train, test in _splits(question, y, groups, number):
        if quick:
            train = train[::3]
        model = _make_model(name, number, quick)
        fit_by_eras(model, X.iloc[train], y[train], groups[train])
        predicted[test] = respond(model, X.iloc[test])
    tested = ~np.isnan(predicted)
    y, p, groups = y[tested], predicted[tested], groups[tested]
    accuracies = era_scores(y, p > 0.5, eras=groups, metric=accuracy_score)
    balanced = era_scores(y, p > 0.5, eras=groups, metric=balanced_accuracy_score)
    return {
        "accuracy": accuracy_score(y, p > 0.5),
        "worst accuracy": accuracies.scores.min(),
        "worst balanced accuracy": balanced.scores.min(),
        "worst AUC": era_scores(y, p, eras=groups, metric=roc_auc_score).scores.min(),
    }


def _splits(
    question: str, y: NDArray[np.int64], groups: NDArray[Any], number: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The rows to train on and to test, once or for each group."""
    rows, seed = np.arange(y.size), seed_of("split", number)
    strata = [f"{group} {label}" for group, label in zip(groups, y, strict=True)]
    split = partial(train_test_split, rows, stratify=strata, random_state=seed)
    if question == KNOWN:
        yield tuple(split(test_size=0.3))
        return
    drawn, _ = split(train_size=0.8)
    for group in np.unique(groups):
        yield drawn[groups[drawn] != group], rows[groups == group]
