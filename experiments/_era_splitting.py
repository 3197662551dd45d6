"""The procedure of DeLise (2023), section 5: the best of random configurations."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.common import coverage_of_papers, rows_of, seed_of
from sklearn_era.ensemble import HistGradientBoostingRegressor

# Table 3's columns: "Original", "Era Split" and "Dir. Era Split".
CRITERIA = ("gain", "era", "directional")

N_CONFIGURATIONS = 30

# The paper's choice of a configuration, which looks at the test set, and an honest one.
BY_TEST = "best on the test set"
BY_ERAS = "by held-out eras"
# Figure 7 has box plots over all configurations.
MEDIAN = "median of all"
TEST, TRAINING, GAP = "test", "training", "gap"

# Table 2, by our names. A share of columns of 0 is that of one column: no fewer can be
# drawn. `boltzmann_alpha` is in the units of the paper's code, which has no factor 1/2
# in its gains, as ours.
GRID: dict[str, Sequence[float]] = {
    "colsample_bytree": (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1),
    "l2_regularization": (0, 0.2, 0.4, 0.6, 0.8, 1),
    "learning_rate": (0.01, 0.05, 0.1, 0.5, 1.0),
    "max_bins": (3, 4, 5, 7, 9),
    "max_depth": (2, 3, 4, 5, 7, 9, 15),
    "max_leaf_nodes": (5, 7, 10, 16, 32),
    "min_samples_leaf": (1, 3, 5, 10, 20),
    "max_iter": (5, 10, 20, 50, 100, 150),
    "boltzmann_alpha": (-2, -1, 0, 1, 2),
}

# Small enough to be one column of any number that the experiments have.
_ONE_COLUMN = 1e-6


def draw_configurations(
    run: int, quick: bool, n: int = N_CONFIGURATIONS, **changes: Sequence[float]
) -> list[dict]:
    """Draw n configurations of a run from table 2 and `changes`, or two with `quick`.
    Each parameter is drawn by itself.
    """
    rng = np.random.default_rng(seed_of("configurations", run))
    grid = {**GRID, **changes, **({"max_iter": (5,)} if quick else {})}
    configurations = []
    for _ in range(2 if quick else n):
        drawn: dict[str, Any] = {
            # `choice` would make floats of the integers among them.
            name: values[int(rng.integers(len(values)))]
            for name, values in grid.items()
        }
        drawn["colsample_bytree"] = drawn["colsample_bytree"] or _ONE_COLUMN
        configurations.append(drawn)
    return configurations


def choose(
    criterion: str,
    configurations: Sequence[dict],
    scores_of: Callable[[str, dict], dict[str, float]],
    held_out_of: Callable[[str, dict], float],
    sign: int = 1,
    **cell: Any,
) -> list[dict]:
    """Rows of the scores of both chosen configurations, and of the medians over all. A
    `sign` of -1 stands for errors.
    """
    cell["criterion"] = criterion
    scores = pd.DataFrame([scores_of(criterion, drawn) for drawn in configurations])
    held_out = [held_out_of(criterion, drawn) for drawn in configurations]
    chosen = {
        BY_TEST: scores.iloc[int(np.argmax(sign * scores[TEST]))],
        BY_ERAS: scores.iloc[int(np.argmax(sign * np.array(held_out)))],
        MEDIAN: scores.median(),
    }
    return [
        row
        for name, values in chosen.items()
        for row in rows_of(values.to_dict(), "score", chosen=name, **cell)
    ]


def fit(
    criterion: str, configuration: dict, rows: tuple[NDArray, ...], seed: int
) -> HistGradientBoostingRegressor:
    """Fit the regressor that the paper has for classes too, to X, y and eras."""
    parameters = dict(configuration)
    alpha = parameters.pop("boltzmann_alpha")
    model = HistGradientBoostingRegressor(
        split_criterion=criterion,
        early_stopping=False,
        random_state=seed,
        **coverage_of_papers(criterion),
        **parameters,
    )
    if criterion != "gain":
        model.set_params(split_criterion__boltzmann_alpha=alpha)
    X, y, eras = rows
    return model.fit(X, y, eras=eras)
