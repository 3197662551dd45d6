"""How often `EraSearchCV` leaves the plain model for one that is exactly as good.

Differences of two models' scores are drawn around 0, as docs/choosing.md describes; in
the last rows, eras of a block share half their variance, as they share a model. Beside
the rule's error stands that of independent eras, ``std / sqrt(M)``.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.common import bars, make_autoregressive, seed_of, summarize
from sklearn_era.metrics._mean_errors import mean_and_error
from sklearn_era.model_selection._search_rule import mean_and_safe_error

TITLE = "How often EraSearchCV leaves the plain model for one that is as good, in %"
N_RUNS = 5

RHOS = (0.0, 0.3, 0.6, 0.9)
SHARED = "shared by folds"
# Folds, and eras in each. With the default of three folds, there are twice as many
# eras in all as are tested.
SIZES = ((3, 2), (3, 4), (3, 8), (3, 22), (5, 4), (8, 8))
INDEPENDENT, OURS = "independent eras", "the rule"


def draw_differences(
    rho: float | str, n_folds: int, n_eras: int, n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw `n` arrays of differences by fold and era, NaN where a fold tests no era."""
    n_all = n_folds * n_eras
    values = rng.normal(size=(n, n_all))
    if isinstance(rho, str):
        values += np.repeat(rng.normal(size=(n, n_folds)), n_eras, axis=1)
    else:
        make_autoregressive(values, rho)
    differences = np.full((n, n_folds, n_all), np.nan)
    for fold in range(n_folds):
        block = slice(fold * n_eras, (fold + 1) * n_eras)
        differences[:, fold, block] = values[:, block]
    return differences


draw = bars("size", "rho", error=OURS)


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the shares; `quick` draws a tenth, of the smallest size alone."""
    rows: list[dict] = []
    n = 200 if quick else 2000
    for number in range(n_runs):
        rng = np.random.default_rng(seed_of("differences", number))
        for n_folds, n_eras in SIZES[: 1 if quick else None]:
            for rho in (*RHOS, SHARED):
                differences = draw_differences(rho, n_folds, n_eras, n, rng)
                by_era = np.nanmean(differences, axis=1)
                for name, (mean, error) in {
                    INDEPENDENT: mean_and_error(by_era),
                    OURS: mean_and_safe_error(differences, rho != SHARED),
                }.items():
                    cell = {"rho": rho, "size": f"{n_folds} x {n_eras}", "error": name}
                    rows.append({**cell, "value": 100 * np.mean(mean > error)})
    return summarize(pd.DataFrame(rows), by=["rho", "size", "error"])


def show(frame: pd.DataFrame) -> str:
    """The table as text."""
    table = frame.pivot(index=["error", "rho"], columns="size", values="mean")
    return table[list(dict.fromkeys(frame["size"]))].round(0).to_string()
