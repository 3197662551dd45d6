"""The invariant random forests of Liao, Wu and Yan (2024), section 5, and what counts.

Every forest is one of the package's. scikit-learn's random forests, which stand beside
them as the paper's RF, have defaults but for the number of trees, the depth and the
rows of a leaf. Boosters have 100 trees, as the paper's XGBoost, of the forests' depth,
and all else at their defaults: ours grows 31 leaves at a rate of 0.1, XGBoost every
leaf of that depth at a rate of 0.3.

"IRF (0)" is the invariant forest without its penalty: the plain gain, all features at
each split, rows drawn within eras; "coverage alone" is the same with the package's rule
that a split needs rows of every era on both sides. λ is the paper's.
docs/papers/invariant-random-forest.md has what is read differently.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import sklearn.ensemble
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from experiments.common import RULE_OF_PAPERS, kind_of, rows_of, seed_of
from sklearn_era import ensemble
from sklearn_era.criteria import Invariant

# Section 5.1: the penalties, and the deepest tree of each kind of task.
PENALTIES = (1, 5, 10)
N_TREES = 50
# By whether the task is one of classes.
DEPTH = {True: 10, False: 20}
# Section 5.2: the features of each kind, and the rows of an era, whose number is ours.
DIMENSIONS = (2, 5, 10, 20)
N_ROWS = 1000

RANDOM_FOREST = "RF"
# Baselines: those of trees, and for the synthetic tables linear ones. The paper's IRM
# and REx are networks, whose penalties it does not give.
BOOSTING, XGBOOST = "boosting", "XGBoost"
LINEAR = "LR"
LINEAR_PENALTIES = (1, 10, 100)
# As tables 1 and 2 have them; the paper's IRM and REx stand beside our middle penalty.
OTHERS = (LINEAR, "IRM (10)", "REx (10)", XGBOOST)

# Table 3's scores, and ours beside them.
STABLE = "splits on stable"
ENVIRONMENTAL = "splits on environmental"
SPLIT_SHARE = "stable share of splits"
GAIN_SHARE = "stable share of gain"

# Which splits there are. The paper does not treat eras without a row in a node, or on a
# side of the split. The first rule requires every era on both sides, and a node without
# it is a leaf. With the other one an era is enough, and eras that are not on both sides
# have no part in the penalty. Without a penalty there is no rule.
EVERY_ERA = "every era"
ANY_ERA = "any era"
COVERAGE = {EVERY_ERA: 1.0, ANY_ERA: 1e-6}
# A penalty that only settles ties. What it changes, the rule of coverage does.
COVERAGE_ALONE = 1e-9


class Case(NamedTuple):
    """A forest of the tables: its penalty, and what else its row is named by."""

    penalty: float
    statistic: str = ""
    coverage: str = ""
    eras: str = ""

    def names(self) -> dict[str, str]:
        return {"model": irf(self.penalty), **self._asdict()}


def cases_of(
    coverages: Sequence[str] = (EVERY_ERA,),
    statistics: Sequence[str] = ("",),
    **names: str,
) -> tuple[Case, ...]:
    """Forests without a penalty, by the rule of coverage alone, and by each penalty."""
    return (
        Case(0),
        Case(COVERAGE_ALONE, coverage=EVERY_ERA, **names),
        *(
            Case(penalty, statistic, coverage, **names)
            for statistic in statistics
            for coverage in coverages
            for penalty in PENALTIES
        ),
    )


def irf(penalty: float) -> str:
    """The name of a forest in the tables."""
    return "coverage alone" if penalty == COVERAGE_ALONE else f"IRF ({penalty})"


def make_forest(is_class: bool, case: Case, **parameters: Any) -> Any:
    """The paper's forest, for classes or for numbers. The paper's λ counts Gini
    impurity, twice the squared error that forests count here.
    """
    settings: dict[str, Any] = {
        "n_estimators": N_TREES,
        "max_depth": DEPTH[is_class],
        **RULE_OF_PAPERS,
        "min_era_coverage": COVERAGE.get(case.coverage, 1.0),
        **parameters,
    }
    penalty, statistic = case.penalty, case.statistic or "effect"
    if is_class:
        penalty, statistic = case.penalty / 2, "ratio"
    kind = kind_of(ensemble, "InvariantForest", is_class)
    return kind(split_criterion=Invariant(penalty, statistic=statistic), **settings)


def make_baselines(
    is_class: bool, seed: int, quick: bool, **settings: Any
) -> dict[str, Any]:
    """RF of the settings, our booster, and XGBoost if it is there, of any depth."""
    n_trees = 5 if quick else 100
    random_forest = kind_of(sklearn.ensemble, "RandomForest", is_class)
    booster = kind_of(ensemble, "HistGradientBoosting", is_class)
    models = {
        RANDOM_FOREST: random_forest(n_jobs=-1, **settings),
        BOOSTING: booster(max_iter=n_trees, early_stopping=False, random_state=seed),
    }
    if find_spec("xgboost") is not None:
        xgboost = import_module("xgboost")
        kind = kind_of(xgboost, "XGB", is_class)
        models[XGBOOST] = kind(n_estimators=n_trees, n_jobs=1, random_state=seed)
    return models


def synthetic_rows(
    data: Bunch,
    is_class: bool,
    cases: Iterable[Case],
    scores_of: Callable[..., dict[str, float]],
    number: int,
    quick: bool,
    *,
    has_all: bool = True,
    **settings: Any,
) -> Iterator[dict]:
    """Rows of the scores of each model, by its predictions, the target and RF's ones.
    Unless `has_all`, there are neither other baselines than RF nor importances.
    """
    given = {**settings, "random_state": seed_of("forest", number)}
    X, y, eras = data.X_train, data.y_train, data.eras_train
    others: dict[str, Any] = {}
    for name, model in make_baselines(is_class, number, quick, **given).items():
        if name == RANDOM_FOREST or has_all:
            model.set_params(max_depth=DEPTH[is_class]).fit(X, y)
            others[name] = model.predict(data.X_test)
        if name == RANDOM_FOREST and has_all:
            others |= linear_predictions(X, y, eras, data.X_test, is_class)
    of_rf = others[RANDOM_FOREST]
    for name, predicted in others.items():
        names = {"model": name, "statistic": "", "coverage": ""}
        yield from rows_of(scores_of(predicted, data.y_test, of_rf), "score", **names)
    n_stable = sum(name.startswith("invariant") for name in data.feature_names)
    for case in cases:
        forest = make_forest(is_class, case, **given).fit(X, y, eras=eras)
        scores = scores_of(forest.predict(data.X_test), data.y_test, of_rf)
        if has_all:
            scores |= importances(forest, n_stable)
        yield from rows_of(scores, "score", **case.names())


def paper_of(
    score: str,
    models: Sequence[str],
    table: Mapping[int, Sequence[float]],
    table_3: Mapping[int, Sequence[tuple[float, float]]],
) -> dict[tuple[str, str, str], float]:
    """The paper's numbers, by dimension, model and score. Rows of the first table have
    a number for each model, those of table 3 the splits on stable and on environmental
    features, without a penalty and with each.
    """
    paper = {
        (f"d={d}", model, score): value
        for d, values in table.items()
        for model, value in zip(models, values, strict=True)
    }
    for d, pairs in table_3.items():
        for penalty, pair in zip((0, *PENALTIES), pairs, strict=True):
            for name, value in frequency_scores(*pair).items():
                paper[f"d={d}", irf(penalty), name] = value
    return paper


def linear_predictions(
    X: NDArray, y: NDArray, eras: NDArray, X_test: NDArray, is_classifier: bool
) -> dict[str, NDArray[Any]]:
    """Predictions of the linear model, and of linear IRMv1 and V-REx, by name."""
    model = (LogisticRegression() if is_classifier else LinearRegression()).fit(X, y)
    found = {LINEAR: model.predict(X_test)}
    for kind in ("IRM", "REx"):
        for penalty in LINEAR_PENALTIES:
            predict = fit_invariant_linear(X, y, eras, kind, penalty, is_classifier)
            found[f"{kind} ({penalty})"] = predict(X_test)
    return found


def fit_invariant_linear(
    X: NDArray[np.float64],
    y: NDArray[Any],
    eras: NDArray[np.int64],
    kind: str,
    penalty: float,
    is_classifier: bool,
) -> Callable[[NDArray[np.float64]], NDArray[Any]]:
    """Minimise the mean risk of eras plus IRMv1's or V-REx's penalty; predict by it.
    The first is the mean square of each era's slope in a factor of the prediction, at
    1; the second is the variance of the risks. It starts from the model without one.
    """
    scaler = StandardScaler().fit(X)
    center, unit = (0.0, 1.0) if is_classifier else (y.mean(), y.std())

    def rows(X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([scaler.transform(X), np.ones(len(X))])

    parts = [(rows(X[eras == e]), (y[eras == e] - center) / unit) for e in set(eras)]

    def objective(w: NDArray[np.float64], penalty: float) -> tuple[float, Any]:
        sums = []
        for Z, target in parts:
            f = Z @ w
            p = expit(f) if is_classifier else f
            risk = (
                np.logaddexp(0, f) - target * f
                if is_classifier
                else (f - target) ** 2 / 2
            )
            curvature = p * (1 - p) if is_classifier else 1.0
            rest = p - target
            by_w = (Z.T @ rest, Z.T @ (curvature * f + rest))
            sums.append([x / len(f) for x in (risk.sum(), rest @ f, *by_w)])
        risks, slopes, of_risks, of_slopes = map(np.array, zip(*sums, strict=True))
        away = risks - risks.mean()
        of_penalty = slopes @ of_slopes if kind == "IRM" else away @ of_risks
        size = np.mean(slopes**2) if kind == "IRM" else risks.var()
        gradient = of_risks.mean(axis=0) + 2 * penalty * of_penalty / len(parts)
        return risks.mean() + penalty * size, gradient

    w = np.zeros(X.shape[1] + 1)
    for weight in (0.0, penalty):
        w = minimize(objective, w, args=(weight,), jac=True).x
    if is_classifier:
        return lambda X: rows(X) @ w > 0
    return lambda X: center + unit * (rows(X) @ w)


def split_frequencies(forest: Any) -> NDArray[np.float64]:
    """How often each feature is split on, by the share of the rows that it splits.
    Section 5.2, table 3: each split adds n_m / n to its feature, the rows of its node
    among those of the tree. All features together have the mean depth of the rows.
    """
    frequencies = np.zeros(forest.n_features_in_)
    for (tree,) in forest._predictors:
        splits = tree.nodes[tree.nodes["is_leaf"] == 0]
        shares = splits["count"] / tree.nodes["count"][0]
        np.add.at(frequencies, splits["feature_idx"], shares)
    return frequencies / len(forest._predictors)


def importances(forest: Any, n_stable: int) -> dict[str, float]:
    """Table 3's importances, and the stable (first) features' part of those by gain."""
    frequencies = split_frequencies(forest)
    return {
        **frequency_scores(
            float(frequencies[:n_stable].sum()), float(frequencies[n_stable:].sum())
        ),
        GAIN_SHARE: float(forest.feature_importances_[:n_stable].sum()),
    }


def frequency_scores(stable: float, environmental: float) -> dict[str, float]:
    """Table 3's pair of frequencies, ours or the paper's, by score, and their ratio.
    `SPLIT_SHARE` does not change with the depth of the trees, as the frequencies do; it
    is NaN where nothing was split.
    """
    total = stable + environmental
    return {
        STABLE: stable,
        ENVIRONMENTAL: environmental,
        SPLIT_SHARE: stable / total if total > 0 else float("nan"),
    }
