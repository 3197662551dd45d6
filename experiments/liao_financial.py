"""Shares that rise: Liao, Wu and Yan (2024), section 5.4, table 4.

Whether a share's price rises in the year after the one that its indicators are of;
environments are the years 2014 to 2018. Any three of them train, pooled, and the other
two test: scenario 1 of `_liao_scenarios`.

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

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier

from experiments._liao import (
    ANY_ERA,
    COVERAGE,
    COVERAGE_ALONE,
    DEPTH_OF_CLASSIFIERS,
    EVERY_ERA,
    N_TREES,
    PENALTIES,
    RANDOM_FOREST,
    invariant_classifier,
    irf,
)
from experiments._liao_scenarios import GIVEN, MADE, Part, splits_to_test, training_eras
from experiments.common import draw_bars, find_data_file, seed_of, summarize

TITLE = "Liao et al. (2024), table 4: shares that rise, accuracy in %"
DATA_FILES = ("financial_2014_2018_cleaned.parquet",)
# Seeds; the paper's runs are the choices of years.
N_RUNS = 1

RISEN = "risen"

ALL_COLUMNS = "numbers, sector"
NUMBERS = "numbers"

_TABLE_4 = (53.07, 55.30, 56.34, 56.84)


def _paper() -> dict[tuple[str, ...], float]:
    """The paper's numbers: columns, model, eras, coverage."""
    forest, *invariant = _TABLE_4
    paper: dict[tuple[str, ...], float] = {}
    for columns in (ALL_COLUMNS, NUMBERS):
        paper[columns, RANDOM_FOREST, "", ""] = forest
        for penalty, value in zip(PENALTIES, invariant, strict=True):
            for rule in COVERAGE:
                paper[columns, irf(penalty), MADE, rule] = value
    return paper


def run(
    *, data_dir: Path | None, n_runs: int = N_RUNS, quick: bool = False
) -> pd.DataFrame:
    """Measure the tables; `quick` has one choice of years, few rows and 2 trees.

    A row for each set of columns, model, way to make eras and rule of coverage.
    """
    frame = pd.read_parquet(find_data_file(*DATA_FILES, data_dir))
    rows: list[dict] = []
    for columns in (ALL_COLUMNS, NUMBERS):
        data = _read(frame, columns).thinned(50 if quick else 1)
        for number in range(n_runs):
            found = _untuned(data, columns, number, quick)
            rows += [{"columns": columns, **row} for row in found]
    by = ["columns", "model", "eras", "coverage"]
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
    return {"model": model, "eras": eras, "coverage": coverage, "value": value}


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
        for penalty, eras, rule in cases:
            forest = invariant_classifier(
                penalty, min_era_coverage=COVERAGE.get(rule, 1.0), **settings
            ).fit(train.X, train.y, eras=train.environments if eras == GIVEN else made)
            rows.append(_row(irf(penalty), _accuracy(forest, test), eras, rule))
    return rows


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """Draw the accuracies with all columns, by what the eras are."""
    shown = frame[
        (frame["columns"] == ALL_COLUMNS)
        & (frame["coverage"] != ANY_ERA)
        & (frame["model"] != irf(COVERAGE_ALONE))
    ]
    shown = shown.assign(eras=shown["eras"].replace("", "none"))
    axes = figure.subplots()
    draw_bars(axes, shown, label="eras", group="model")
    axes.set(ylim=(40, 65), xlabel="eras")
    figure.suptitle("Shares that rise: accuracy in % in two other years")
