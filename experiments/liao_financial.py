"""Shares that rise: Liao, Wu and Yan (2024), section 5.4, tables 4 and 5.

Whether a share's price rises in the year after the one that its indicators are of;
environments are the years 2014 to 2018. Any three of them train, pooled, and the other
two test: scenario 1 of `_liao_scenarios`. In scenarios 2 and 3, one of the two tunes
depth and penalty by its log loss, and the other one tests: 20 choices.

The paper has the raw files, without missing values filled; here they are cleaned, with
the columns that all years have: 37 numbers and the sector, as columns of 0 and 1. That
is the protocol, with subsets of little correlation as eras, as in the paper; beside it
stand the 37 numbers alone, and the years as eras, which the paper gives to the forest
in its scenario 3 only.

RF is scikit-learn's RandomForestClassifier, which draws features for each split. "IRF
(0)" is the invariant forest without its penalty, "coverage alone" the same with the
package's rule that a split needs rows of every era on both sides. λ is the paper's. How
many shares rise differs from year to year, from 28 to 70 %, which decides most of an
accuracy: "risen" is what predicting a rise for every share would score.
"""

from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

from experiments._liao import (
    ANY_ERA,
    COVERAGE,
    COVERAGE_ALONE,
    DEPTH_OF_CLASSIFIERS,
    EVERY_ERA,
    N_TREES,
    PENALTIES,
    RANDOM_FOREST,
    XGBOOST,
    boosters,
    invariant_classifier,
    irf,
)
from experiments._liao_scenarios import (
    CHOSEN,
    ERAS_OF_SCENARIO,
    GIVEN,
    MADE,
    Part,
    splits_to_test,
    splits_to_tune,
    training_eras,
    tuned_models,
)
from experiments.common import bars, find_data_file, seed_of, summarize

TITLE = "Liao et al. (2024), tables 4 and 5: shares that rise, accuracy in %"
DATA_FILES = ("financial_2014_2018_cleaned.parquet",)
# Seeds; the paper's runs are the choices of years.
N_RUNS = 1

RISEN = "risen"

ALL_COLUMNS = "numbers, sector"
NUMBERS = "numbers"

DEPTHS = (5, 10, 15)

# RF, XGBoost, and IRF at each penalty.
_TABLE_4 = (53.07, 53.05, 55.30, 56.34, 56.84)
# RF, XGBoost and IRF.
_TABLE_5 = {"2": (54.42, 52.46, 56.20), "3": (54.50, 52.46, 54.27)}


def _paper() -> dict[tuple[str, ...], float]:
    """The paper's numbers: scenario, columns, model, eras, coverage."""
    forest, xgboost, *invariant = _TABLE_4
    paper: dict[tuple[str, ...], float] = {}
    for columns in (ALL_COLUMNS, NUMBERS):
        paper["1", columns, RANDOM_FOREST, "", ""] = forest
        paper["1", columns, XGBOOST, "", ""] = xgboost
        for penalty, value in zip(PENALTIES, invariant, strict=True):
            for rule in COVERAGE:
                paper["1", columns, irf(penalty), MADE, rule] = value
    for scenario, values in _TABLE_5.items():
        for model, value in zip((RANDOM_FOREST, XGBOOST, CHOSEN), values, strict=True):
            eras = ERAS_OF_SCENARIO[scenario] if model == CHOSEN else ""
            coverage = EVERY_ERA if model == CHOSEN else ""
            paper[scenario, ALL_COLUMNS, model, eras, coverage] = value
    return paper


draw = bars("eras", "model", "columns", scenario="1", coverage=["", EVERY_ERA])


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has one choice of years, few rows and 2 trees.

    A row for each set of columns, model, way to make eras and rule of coverage.
    """
    frame = pd.read_parquet(find_data_file(*DATA_FILES, data_dir))
    rows: list[dict] = []
    for columns in (ALL_COLUMNS, NUMBERS):
        data = _read(frame, columns).thinned(50 if quick else 1)
        for number in range(n_runs):
            found = [
                {"scenario": "1", **x} for x in _untuned(data, columns, number, quick)
            ]
            if columns == ALL_COLUMNS:
                found += _tuned(data, number, quick)
            rows += [{"columns": columns, **row} for row in found]
    by = ["scenario", "columns", "model", "eras", "coverage"]
    return summarize(pd.DataFrame(rows), by=by, value="value", paper=_paper())


def _read(frame: pd.DataFrame, columns: str) -> Part:
    """The columns that no year lacks, without what the target is made of."""
    full = [
        name
        for name in frame.columns[frame.notna().all()]
        if name not in ("year", "Class") and "PRICE VAR" not in name
    ]
    inputs = frame[full]
    if columns == NUMBERS:
        inputs = inputs.drop(columns="Sector")
    else:
        inputs = pd.get_dummies(inputs, columns=["Sector"])
    return Part(
        inputs.to_numpy(np.float64),
        frame["Class"].to_numpy(),
        frame["year"].to_numpy(np.intp),
    )


def _accuracy(model: RandomForestClassifier, part: Part) -> float:
    """In percent."""
    return 100 * float(model.score(part.X, part.y))


def _row(model: str, value: float, eras: str = "", coverage: str = "") -> dict:
    row = {"scenario": "1", "model": model, "eras": eras, "coverage": coverage}
    return {**row, "value": value}


def _untuned(data: Part, columns: str, number: int, quick: bool) -> list[dict]:
    """Every choice of three years."""
    settings = {
        "n_estimators": 2 if quick else N_TREES,
        "random_state": seed_of("forest", number),
    }
    cases: list[tuple[float, str, str]] = [
        (0, "", ""),
        (COVERAGE_ALONE, MADE, EVERY_ERA),
        *((penalty, MADE, EVERY_ERA) for penalty in PENALTIES),
    ]
    if columns == ALL_COLUMNS:
        cases += [(penalty, MADE, ANY_ERA) for penalty in PENALTIES]
        cases += [(penalty, GIVEN, EVERY_ERA) for penalty in PENALTIES]
    rows = []
    for train, test in islice(splits_to_test(data, 3), 1 if quick else None):
        made = training_eras(train, MADE, seed_of("eras", number))
        reference = RandomForestClassifier(
            max_depth=DEPTH_OF_CLASSIFIERS, n_jobs=-1, **settings
        ).fit(train.X, train.y)
        rows += [
            _row(RISEN, 100 * float(test.y.mean())),
            _row(RANDOM_FOREST, _accuracy(reference, test)),
        ]
        for name, make in boosters(True, number, quick).items():
            model = make(DEPTH_OF_CLASSIFIERS).fit(train.X, train.y)
            rows.append(_row(name, _accuracy(model, test)))
        for penalty, eras, rule in cases:
            forest = invariant_classifier(
                penalty, min_era_coverage=COVERAGE.get(rule, 1.0), **settings
            ).fit(train.X, train.y, eras=train.environments if eras == GIVEN else made)
            rows.append(_row(irf(penalty), _accuracy(forest, test), eras, rule))
    return rows


def _loss(model: RandomForestClassifier, part: Part) -> float:
    return float(log_loss(part.y, model.predict_proba(part.X)))


def _tuned(data: Part, number: int, quick: bool) -> list[dict]:
    """Scenarios 2 and 3: every choice of three years, and of one to tune."""
    seed = seed_of("forest", number)
    settings = {"n_estimators": 2 if quick else N_TREES, "random_state": seed}
    makers: dict[str, Any] = {
        RANDOM_FOREST: lambda depth: RandomForestClassifier(
            max_depth=depth, n_jobs=-1, **settings
        ),
        **boosters(True, number, quick),
    }
    splits = islice(splits_to_tune(data, 3), 1 if quick else None)
    forest = partial(invariant_classifier, **settings)
    rows = []
    for name, scenario, model, test in tuned_models(
        splits, makers, forest, DEPTHS, _loss, seed_of("eras", number)
    ):
        row = _row(name, _accuracy(model, test)) | {"scenario": scenario}
        if name == CHOSEN:
            row |= {"eras": ERAS_OF_SCENARIO[scenario], "coverage": EVERY_ERA}
        rows.append(row)
    return rows
