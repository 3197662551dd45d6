"""Synthetic numbers: Liao, Wu and Yan (2024), section 5.2, tables 2 and 3.

The target is the sum of d features and noise of the same variance. One feature more is
the target with noise on it, little in one training era, more in the other one, and most
in the test era. The paper does not give the number of rows; 1000 an era are taken.

Scores are ratios to the mean squared error of scikit-learn's RandomForestRegressor on
the same data, with leaves of the same least size and all features at each split, as its
default is; the mean of ratios is taken over the runs. "IRF (0)" is the invariant forest
without its penalty, with rows drawn within eras; "coverage alone" is the same with the
package's rule that a split needs rows of every era on both sides.

The paper's trees split down to single rows, and its penalty is the variance of
"changing_rate"; "effect" is the package's own. What the package does not split for want
of an era on a side, the paper leaves open; see `_liao.COVERAGE`. IRM and REx are linear
models here, at three penalties each, and not the paper's networks.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from experiments._liao import (
    ANY_ERA,
    COVERAGE,
    COVERAGE_ALONE,
    DEPTH_OF_REGRESSORS,
    EVERY_ERA,
    N_TREES,
    OTHERS,
    PENALTIES,
    boosters,
    frequency_scores,
    importances,
    invariant_regressor,
    irf,
    linear_predictions,
)
from experiments._paper_data import make_liao_regression
from experiments.common import bars, seed_of, summarize

TITLE = "Liao et al. (2024), tables 2 and 3: synthetic numbers, MSE by that of RF"
DATA_FILES: tuple[str, ...] = ()
N_RUNS = 5

DIMENSIONS = (2, 5, 10, 20)
N_ROWS = 1000
LEAVES = (1, 10)

RATIO = "MSE ratio"

_PENALISED = [
    (statistic, rule)
    for statistic in ("effect", "changing_rate")
    for rule in (EVERY_ERA, ANY_ERA)
]

# By dimension: IRF at each penalty, RF being 1.
_TABLE_2 = {
    2: (0.982, 0.914, 0.796),
    5: (1.015, 0.956, 0.761),
    10: (1.022, 0.930, 0.721),
    20: (0.990, 0.874, 0.684),
}
# By dimension: LR, IRM, REx and XGBoost.
_OTHERS = {
    2: (2.095, 1.014, 1.076, 1.131),
    5: (1.779, 0.786, 0.928, 1.028),
    10: (1.486, 0.864, 0.807, 1.008),
    20: (1.348, 0.895, 0.818, 1.066),
}
# By dimension: stable and environmental, at penalty 0 and each other.
_TABLE_3 = {
    2: ((6.54, 4.87), (6.69, 4.65), (8.15, 3.56), (9.26, 2.17)),
    5: ((7.52, 4.01), (7.43, 3.91), (8.75, 3.00), (9.72, 1.75)),
    10: ((7.95, 3.65), (7.88, 3.52), (9.12, 2.54), (10.13, 1.34)),
    20: ((8.31, 3.42), (8.21, 3.27), (9.54, 2.16), (10.49, 1.03)),
}


def _leaf(rows: int) -> str:
    return f"{rows} row{'s' * (rows > 1)}"


def _paper() -> dict[tuple[str, ...], float]:
    """The paper's numbers, set beside both statistics and rules of coverage."""
    numbers: dict[tuple[str, ...], float] = {}
    for d, ratios in _TABLE_2.items():
        for penalty, value in zip(PENALTIES, ratios, strict=True):
            for leaf in LEAVES:
                for case in _PENALISED:
                    cell = (f"d={d}", _leaf(leaf), irf(penalty), *case)
                    numbers[*cell, RATIO] = value
    for d, values in _OTHERS.items():
        for model, value in zip(OTHERS, values, strict=True):
            numbers[f"d={d}", _leaf(1), model, "", "", RATIO] = value
    for d, pairs in _TABLE_3.items():
        for penalty, pair in zip((0, *PENALTIES), pairs, strict=True):
            for case in _PENALISED if penalty else [("", "")]:
                for score, value in frequency_scores(*pair).items():
                    cell = (f"d={d}", _leaf(1), irf(penalty), *case)
                    numbers[*cell, score] = value
    return numbers


draw = bars(
    "dimension", "model", "leaf", statistic="effect", coverage=EVERY_ERA, score=RATIO
)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has d = 2, and 3 trees on 100 rows an era.

    A row for each dimension, size of leaves, model, statistic, rule of coverage and
    score.
    """
    rows: list[dict] = []
    for d in (2,) if quick else DIMENSIONS:
        for leaf in LEAVES:
            case = {"dimension": f"d={d}", "leaf": _leaf(leaf)}
            for number in range(n_runs):
                found = _one_run(d, leaf, number, quick)
                rows += [{**case, **row} for row in found]
    by = ["dimension", "leaf", "model", "statistic", "coverage", "score"]
    return summarize(pd.DataFrame(rows), by=by, value="value", paper=_paper())


def _one_run(d: int, leaf: int, number: int, quick: bool) -> list[dict]:
    """Every model, fitted to the same data."""
    data = make_liao_regression(
        n_features=d,
        n_samples_per_era=100 if quick else N_ROWS,
        random_state=seed_of("data", d, number),
    )
    settings = {
        "n_estimators": 3 if quick else N_TREES,
        "min_samples_leaf": leaf,
        "random_state": seed_of("forest", number),
    }
    reference = RandomForestRegressor(
        max_depth=DEPTH_OF_REGRESSORS, n_jobs=-1, **settings
    ).fit(data.X_train, data.y_train)
    baseline = np.mean((reference.predict(data.X_test) - data.y_test) ** 2)
    others = {}
    train = (data.X_train, data.y_train)
    if leaf == 1:
        others = linear_predictions(*train, data.eras_train, data.X_test, False)
        for name, make in boosters(False, number, quick).items():
            others[name] = make(DEPTH_OF_REGRESSORS).fit(*train).predict(data.X_test)
    case = {"statistic": "", "coverage": "", "score": RATIO}
    errors = {name: np.mean((x - data.y_test) ** 2) for name, x in others.items()}
    rows = [
        {"model": name, **case, "value": float(error / baseline)}
        for name, error in errors.items()
    ]
    cases: list[tuple[float, str, str]] = [
        (0, "", ""),
        (COVERAGE_ALONE, "", EVERY_ERA),
        *((penalty, *case) for case in _PENALISED for penalty in PENALTIES),
    ]
    for penalty, statistic, rule in cases:
        forest = invariant_regressor(
            penalty,
            statistic or "effect",
            min_era_coverage=COVERAGE.get(rule, 1.0),
            **settings,
        ).fit(data.X_train, data.y_train, eras=data.eras_train)
        error = np.mean((forest.predict(data.X_test) - data.y_test) ** 2)
        values = {RATIO: float(error / baseline)}
        if leaf == 1:
            # Table 3's trees.
            values |= importances(forest, d)
        case = {"model": irf(penalty), "statistic": statistic, "coverage": rule}
        rows += [{**case, "score": score, "value": values[score]} for score in values]
    return rows
