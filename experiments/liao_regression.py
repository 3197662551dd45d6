"""Synthetic numbers: Liao, Wu and Yan (2024), section 5.2, tables 2 and 3.

Scores are ratios to the mean squared error of scikit-learn's RandomForestRegressor on
the same data, with leaves of the same least size; the mean of ratios is taken over the
runs. The paper's trees split down to single rows, and its penalty is the variance of
"changing_rate"; "effect" is the package's own. Rows, coverage and linear models are as
in `liao_classification`.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import _liao as liao
from experiments._paper_data import make_liao_regression
from experiments.common import bars, seed_of, summarize

TITLE = "Liao et al. (2024), tables 2 and 3: synthetic numbers, MSE by that of RF"
N_RUNS = 5

LEAVES = (1, 10)

RATIO = "MSE ratio"

# By dimension: IRF at each penalty, RF being 1, and the others.
_MODELS = (*map(liao.irf, liao.PENALTIES), *liao.OTHERS)
_TABLE_2 = {
    2: (0.982, 0.914, 0.796, 2.095, 1.014, 1.076, 1.131),
    5: (1.015, 0.956, 0.761, 1.779, 0.786, 0.928, 1.028),
    10: (1.022, 0.930, 0.721, 1.486, 0.864, 0.807, 1.008),
    20: (0.990, 0.874, 0.684, 1.348, 0.895, 0.818, 1.066),
}
# By dimension: stable and environmental, at penalty 0 and each other.
_TABLE_3 = {
    2: ((6.54, 4.87), (6.69, 4.65), (8.15, 3.56), (9.26, 2.17)),
    5: ((7.52, 4.01), (7.43, 3.91), (8.75, 3.00), (9.72, 1.75)),
    10: ((7.95, 3.65), (7.88, 3.52), (9.12, 2.54), (10.13, 1.34)),
    20: ((8.31, 3.42), (8.21, 3.27), (9.54, 2.16), (10.49, 1.03)),
}
PAPER = liao.paper_of(RATIO, _MODELS, _TABLE_2, _TABLE_3)
CASES = liao.cases_of([*liao.COVERAGE], ("effect", "changing_rate"))

draw = bars(
    "dimension",
    "model",
    "leaf",
    coverage=liao.EVERY_ERA,
    statistic="effect",
    score=RATIO,
)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has d = 2, and 3 trees on 100 rows an era."""
    rows = [
        {"dimension": f"d={d}", "leaf": f"{leaf} row{'s' * (leaf > 1)}", **row}
        for d in ((2,) if quick else liao.DIMENSIONS)
        for leaf in LEAVES
        for number in range(n_runs)
        for row in _one_run(d, leaf, number, quick)
    ]
    by = ["dimension", "leaf", "model", "statistic", "coverage", "score"]
    of_paper = ["dimension", "model", "score"]
    return summarize(pd.DataFrame(rows), by=by, paper=PAPER, paper_by=of_paper)


def _one_run(d: int, leaf: int, number: int, quick: bool) -> Iterator[dict]:
    """Every model, fitted to the same data; importances are of table 3's trees."""
    data = make_liao_regression(
        n_features=d,
        n_samples_per_era=100 if quick else liao.N_ROWS,
        random_state=seed_of("data", d, number),
    )
    settings = {"n_estimators": 3 if quick else liao.N_TREES, "min_samples_leaf": leaf}
    return liao.synthetic_rows(
        data, False, CASES, _ratio, number, quick, has_all=leaf == 1, **settings
    )


def _ratio(predicted: NDArray, y: NDArray, of_rf: NDArray) -> dict[str, float]:
    """The ratio of errors, but for RF itself."""
    error, of_forest = (float(np.mean((p - y) ** 2)) for p in (predicted, of_rf))
    return {} if predicted is of_rf else {RATIO: error / of_forest}
