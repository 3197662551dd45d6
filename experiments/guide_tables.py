"""The guide's tables on made-up data: early stopping, made eras, a model of ranks.

No table of a paper: each shows what one option does where the answer is known.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import mean_squared_error
from sklearn.preprocessing import StandardScaler

from experiments.common import RULE_OF_PAPERS, bars, markdown, seed_of, summarize
from sklearn_era.criteria import Directional, Era, Invariant
from sklearn_era.datasets import make_numerai_like
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.environments import decorrelated_partition
from sklearn_era.metrics import era_scores

TITLE = "Tables of the guide on made-up data"
N_RUNS = 5


# A number of a table, by its row and its column.
Cell = tuple[str, str, float]


def early_stopping(seed: int, quick: bool) -> Iterator[Cell]:
    """Hold out rows or whole eras, and test on 20 new eras."""
    rng = np.random.default_rng(seed)
    lasting = rng.normal(size=10) / 4

    def draw() -> tuple[NDArray[Any], ...]:
        eras = np.repeat(np.arange(20), 200)
        level, identity = 2 * rng.normal(size=20), rng.normal(size=20)
        effects = rng.normal(size=(20, 9)) / 4
        X = rng.normal(size=(eras.size, 20))
        y = X[:, :10] @ lasting + (X[:, 10:19] * effects[eras]).sum(axis=1)
        y += level[eras] + rng.normal(size=eras.size)
        X[:, 19] = identity[eras]
        return X, y, eras

    (X, y, eras), (X_test, y_test, _) = draw(), draw()
    stopping: dict[str, Any] = {"early_stopping": True, "scoring": "r2"}
    stopping |= {"validation_fraction": 0.25, "n_iter_no_change": 20}
    for criterion in ("gain", "directional"):
        for held_out, validation_eras in (("rows", None), ("the last eras", "last")):
            model = HistGradientBoostingRegressor(max_iter=10 if quick else 1000)
            model.set_params(split_criterion=criterion, validation_eras=validation_eras)
            model.set_params(**stopping, random_state=seed).fit(X, y, eras=eras)
            row = f"{criterion}, {held_out}"
            yield row, "trees", model.n_iter_
            yield row, "best R² held out", model.validation_score_.max()
            yield row, "R² on new eras", model.score(X_test, y_test)


def made_eras(seed: int, quick: bool) -> Iterator[Cell]:
    """Eras that are made of the features where four regimes are hidden."""
    rng = np.random.default_rng(seed)
    regimes = np.repeat(np.arange(4), 1500)

    def draw(follows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        causes = rng.normal(size=(follows.size, 3))
        y = causes.sum(axis=1) + rng.normal(size=follows.size)
        effects = follows[:, None] * y[:, None] + rng.normal(size=(follows.size, 2))
        return np.column_stack([causes, effects]), y

    X, y = draw(np.array([1.5, 1.0, 0.3, 0.0])[regimes])
    X_test, y_test = draw(np.full(3000, -1.0))
    partitions = {
        "the hidden regimes": regimes,
        "at random": rng.permutation(regimes),
        "k-means": KMeans(4, n_init=10, random_state=seed).fit_predict(
            StandardScaler().fit_transform(X)
        ),
        "decorrelated_partition": decorrelated_partition(X, 4, random_state=seed),
    }
    parameters: dict[str, dict[str, Any]] = {
        "gain": {},
        "era, worst era": {"split_criterion": Era(boltzmann_alpha=-np.inf)},
        "directional": {"split_criterion": "directional"},
        "invariant, λ = 10": {"split_criterion": Invariant(penalty=10)},
    }
    for row, eras in partitions.items():
        for column, of_criterion in parameters.items():
            model = HistGradientBoostingRegressor(max_iter=5 if quick else 60)
            model.set_params(max_leaf_nodes=8, early_stopping=False)
            model.set_params(**RULE_OF_PAPERS, **of_criterion).fit(X, y, eras=eras)
            error = mean_squared_error(y_test, model.predict(X_test))
            yield row, column, error


def made_up_ranks(seed: int, quick: bool) -> Iterator[Cell]:
    """Rank correlation by era: effects that reverse, and weak ones that last."""
    data = make_numerai_like(random_state=seed)
    train = data.eras <= np.unique(data.eras)[99]
    y, y_live = data.y.ravel(), data.y_live.ravel()
    reversing = {
        "": (data.X[train], y[train], data.eras[train]),
        "reversing, validation": (data.X[~train], y[~train], data.eras[~train]),
        "reversing, live-like": (data.X_live, y_live, data.eras_live),
    }
    of_numerai: dict[str, Any] = {"max_iter": 10 if quick else 200}
    of_numerai |= {"max_depth": 5, "max_leaf_nodes": 32, "min_samples_leaf": 100}
    of_numerai |= {"learning_rate": 0.05, "colsample_bytree": 0.1}
    of_numerai["early_stopping"] = False
    for name, parts in (("reversing", reversing), ("weak", weak_effects(seed, quick))):
        (X, y, eras), *_ = parts.values()
        for agreement in (None, 0.0, 0.1, 0.2, 0.4):
            row = "gain"
            model = HistGradientBoostingRegressor(**of_numerai, random_state=seed)
            if agreement is not None:
                row = f"directional, agreement {agreement}"
                criterion = Directional(min_agreement=agreement)
                model.set_params(split_criterion=criterion, min_era_coverage=0.5)
                model.set_params(min_gain_share=0.0)
            model.fit(X, y, eras=eras)
            n_split = sum(tree.get_n_leaf_nodes() > 1 for (tree,) in model._predictors)
            yield row, f"{name}, trees with splits", n_split
            for column, (X_later, y_later, later) in parts.items():
                if not column:
                    continue
                predicted = model.predict(X_later)
                scores = era_scores(y_later, predicted, eras=later, metric=_correlation)
                yield row, column, scores.mean()


def weak_effects(
    seed: int, quick: bool
) -> dict[str, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """140 eras of 60 features whose effects vary more than they last, as Numerai's."""
    rng = np.random.default_rng(seed)
    eras = np.repeat(np.arange(140), 200 if quick else 2000)
    X = rng.integers(5, size=(eras.size, 60), dtype=np.int8)
    lasting = 0.004 * rng.choice([-1, 1], size=60)
    effects = lasting + 0.02 * rng.normal(size=(140, 60))
    standardised = (X - np.float32(2)) / np.float32(np.sqrt(2))
    y = np.einsum("ij,ij->i", standardised, effects[eras]) + rng.normal(size=eras.size)
    train = eras < 100
    later = X[~train], y[~train], eras[~train]
    return {"": (X[train], y[train], eras[train]), "weak, later eras": later}


def _correlation(y_true: NDArray[Any], y_pred: NDArray[Any]) -> float:
    """Correlate ranks; 0 for a constant prediction."""
    if np.ptp(y_pred) == 0:
        return 0.0
    return float(spearmanr(y_true, y_pred).statistic)


TABLES: dict[str, Callable[[int, bool], Iterator[Cell]]] = {
    "early stopping": early_stopping,
    "made eras": made_eras,
    "made-up ranks": made_up_ranks,
}

draw = bars("row", "column", "table")


def run(data_dir: Path | None, n_runs: int, quick: bool) -> pd.DataFrame:
    """Measure the tables; `quick` has fewer trees and rows."""
    cells = [
        {"table": name, "row": row, "column": column, "value": value}
        for name, measure in TABLES.items()
        for run in range(n_runs)
        for row, column, value in measure(seed_of(name, run), quick)
    ]
    by = ["table", "row", "column"]
    return summarize(pd.DataFrame(cells), by=by)


def show(frame: pd.DataFrame) -> str:
    """The means and the standard deviations over the runs, as tables of Markdown."""
    has_runs = frame["std"].notna()
    stds = frame["std"].map(" (std {:.2g})".format).where(has_runs, "")
    frame = frame.assign(text=frame["mean"].map("{:.3g}".format) + stds)
    tables = []
    for name, cells in frame.groupby("table", sort=False):
        table = cells.set_index(["row", "column"])["text"].unstack(sort=False)
        lines = table.fillna("").reset_index().to_numpy()
        tables.append(markdown([[name, *table.columns], *lines]))
    return "\n\n".join(tables)
