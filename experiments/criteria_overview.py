"""The criteria on five kinds of data that differ in what happens between eras.

The score is R², or the accuracy where the target is a class, on test rows of eras that
were not trained on; where eras do not differ, of rows of the same kind.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1
from sklearn.metrics import accuracy_score, r2_score

from experiments._paper_data import make_shortcut_classification
from experiments.common import RULE_OF_PAPERS, bars, markdown, summarize_beside
from sklearn_era.criteria import Blend, Directional, Era, Invariant, TimeRobust, VREx
from sklearn_era.criteria._criteria import SplitCriterion
from sklearn_era.datasets import make_synthetic_memorization
from sklearn_era.ensemble import HistGradientBoostingRegressor

TITLE = "Criteria by what happens between eras: R² or accuracy on new eras"
N_RUNS = 5


class Rows(NamedTuple):
    """Rows to train on, with their eras, and rows to test on."""

    X: NDArray[Any]
    y: NDArray[Any]
    eras: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    is_class: bool


def shortcut(seed: int) -> Rows:
    """A spiral behind a shortcut that is another one in each era."""
    return _of_bunch(make_synthetic_memorization(random_state=seed))


def weak_and_shortcut(seed: int) -> Rows:
    """Weak evidence that lasts, and a shortcut that misleads in the test eras."""
    return _of_bunch(make_shortcut_classification(seed))


def varying_effect(seed: int) -> Rows:
    """An effect of one sign and another size in each era, and of none in the test."""
    rng = np.random.default_rng(seed)
    eras = np.repeat(np.arange(16), 250)
    X = rng.normal(size=(eras.size, 10))
    size = rng.exponential(1.5, size=16)
    y = X[:, 0] + size[eras] * X[:, 1] + rng.normal(size=eras.size)
    X_test = rng.normal(size=(4000, 10))
    y_test = X_test[:, 0] + rng.normal(size=4000)
    return Rows(X, y, eras, X_test, y_test, is_class=False)


def no_shortcut(seed: int) -> Rows:
    """The spiral alone: eras do not differ."""
    options = {"n_shortcut_features": 0, "radial_noise": 0.06, "random_state": seed}
    return _of_bunch(make_synthetic_memorization(n_samples_per_era=100, **options))


def small_eras(seed: int) -> Rows:
    """100 eras of 20 rows, at random: they do not differ."""
    X, y = make_friedman1(4000, noise=3, random_state=seed)
    eras = np.random.default_rng(seed).permutation(np.repeat(np.arange(100), 20))
    return Rows(X[:2000], y[:2000], eras, X[2000:], y[2000:], is_class=False)


def _of_bunch(data: Any) -> Rows:
    X, y, eras = data.X_train, data.y_train, data.eras_train
    return Rows(X, y, eras, data.X_test, data.y_test, is_class=True)


DATA: dict[str, Callable[[int], Rows]] = {
    "shortcut": shortcut,
    "weak and shortcut": weak_and_shortcut,
    "varying effect": varying_effect,
    "no shortcut": no_shortcut,
    "100 eras of 20": small_eras,
}
# For `shortcut`, whose spiral takes deep trees and full steps.
DEEP = {"max_iter": 50, "max_depth": 10, "max_leaf_nodes": 32, "learning_rate": 1.0}


# Every era in every split, the papers' rule, unless the name has another rule.
_CRITERIA: dict[str, str | SplitCriterion | dict] = {
    **{
        f"era, alpha = {alpha:g}": Era(boltzmann_alpha=alpha)
        for alpha in (0.0, -1.0, -np.inf)
    },
    "directional": "directional",
    "directional, all eras agree": Directional(min_agreement=1.0),
    "time_robust, max": TimeRobust(),
    "time_robust, mean": TimeRobust(aggregation="mean"),
    "invariant, λ = 1": Invariant(),
    "invariant, λ = 10": Invariant(penalty=10.0),
    "invariant, changing rate, λ = 1": Invariant(statistic="changing_rate"),
    "invariant, changing rate, λ = 10": Invariant(10.0, statistic="changing_rate"),
    "invariant, ratio, λ = 0.01": Invariant(0.01, statistic="ratio"),
    "invariant, ratio, λ = 1": Invariant(statistic="ratio"),
    **{f"vrex, λ = {penalty:g}": VREx(penalty=penalty) for penalty in (0.5, 1.0, 2.0)},
    "directional + gain": Blend({"directional": 1, "gain": 1}, normalize=False),
    "directional + gain, normalised": {"directional": 1, "gain": 1},
    "directional + era / 2, normalised": {"directional": 1, "era": 0.5},
    "gain + vrex, normalised": {"gain": 1, "vrex": 1},
}
_HALF = {**RULE_OF_PAPERS, "min_era_coverage": 0.5}
MODELS: dict[str, dict[str, Any]] = {
    "gain": {},
    **{
        name: {"split_criterion": criterion, **RULE_OF_PAPERS}
        for name, criterion in _CRITERIA.items()
    },
    **{
        f"{name}, half of the eras": {"split_criterion": name, **_HALF}
        for name in ("era", "directional")
    },
    **{
        f"{name}, default coverage": {"split_criterion": name}
        for name in ("era", "directional", "time_robust", "invariant", "vrex")
    },
}

draw = bars("model", panel="data")


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the table; `quick` has 5 trees a model instead of 50 or 100."""
    rows: list[dict] = []
    for name, make in DATA.items():
        for seed in range(n_runs):
            data = make(seed)
            common = {"early_stopping": False, **(DEEP if make is shortcut else {})}
            common |= {"max_iter": 5} if quick else {}
            for model, parameters in MODELS.items():
                if ", ratio" in model and not data.is_class:
                    continue  # it counts classes
                value = _score(data, {**common, **parameters})
                rows.append({"model": model, "data": name, "run": seed, "value": value})
    return summarize_beside(pd.DataFrame(rows), by=["model", "data"], reference="gain")


def _score(data: Rows, parameters: dict[str, Any]) -> float:
    model = HistGradientBoostingRegressor(**parameters)
    model.fit(data.X, data.y, eras=data.eras)
    predicted = model.predict(data.X_test)
    if data.is_class:
        return accuracy_score(data.y_test, predicted > 0.5)
    return r2_score(data.y_test, predicted)


def show(frame: pd.DataFrame) -> str:
    """The means, a model a row, as a table of Markdown."""
    means = frame.pivot(index="model", columns="data", values="mean")
    means = means.loc[list(MODELS), list(DATA)]
    texts = means.map("{:.2f}".format).reset_index()
    return markdown([["model", *DATA], *texts.to_numpy()])
