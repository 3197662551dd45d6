"""Data to hold fitted trees against the brute force of reference.py with.

They are small and awkward: eras of unequal size in no order, with string labels, and
features with few values, so that ties, empty bins and pure eras turn up.
"""

import math
import re
import warnings
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st

from helpers import criteria as criteria_table
from oracle.reference import Report, check_fit
from oracle.rules import rules_of
from sklearn_era.criteria import Blend, Directional, Era, Invariant, TimeRobust, VREx
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor

# The table of all grids, and the parameters at the ends of their ranges.
TABLE = criteria_table.CRITERIA | {"invariant, ratio": criteria_table.RATIO}
TABLE |= criteria_table.DEVIATIONS
EXTREMES = {
    repr(criterion): {"split_criterion": criterion} for criterion in [
        *(Era(alpha) for alpha in (-1e3, 1.0, 1e3, math.inf)),
        *(Era(alpha, normalize=True) for alpha in (-30.0, -math.inf)),
        *(Directional(agreement, alpha) for alpha, agreement in [
            (0.0, 1.0), (-1.0, 0.0), (1e3, 0.6), (-math.inf, 0.0), (math.inf, 1.0),
        ]),
        Directional(boltzmann_alpha=2.0, normalize=True), Invariant(0.0),
        Invariant(10.0), Invariant(0.01, "ratio"), Invariant(1.0, "ratio"),
        TimeRobust(0.3), TimeRobust(100.0), VREx(0.0), VREx(0.3, normalize=True),
        Blend({"era": 0.5, "directional": 0.5, "gain": 0.0}, normalize=False),
        {"directional": 0.3, "gain": 0.0},
        Blend({"gain": 1.0, "vrex": 0.3}, normalize=False),
        {"gain": 0.2, "era": 0.4, "directional": 0.1}, {"invariant": 1.0, "vrex": 2.0},
        # Penalties of one name, and of unlike scales.
        Blend({Invariant(0.1): 1.0, VREx(2.0): 0.5}, normalize=False),
        Blend({"gain": 0.1, Era(-0.2): 1, Directional(0.4): 5, "invariant": 0.3,
               "vrex": 0.2}, normalize=False),
    ]
} | {
    f"{name}, least gain": {"split_criterion": name, "min_impurity_decrease": 0.05}
    for name in ("gain", "time_robust")
}  # fmt: skip
CRITERIA = TABLE | EXTREMES
SLOW = pytest.mark.slow


def names_of(criterion: dict) -> set[str]:
    """The criteria that count where there are several eras."""
    return set(rules_of(Regressor(**criterion), 2).weights)


# Those that look at eras, and so are not found by scikit-learn's own splitter.
ERA_CRITERIA = {name: x for name, x in CRITERIA.items() if names_of(x) != {"gain"}}
# Those whose trees end where eras are not on both sides of a split.
SHARING = criteria_table.SHARING
COVERING = {name: x for name, x in ERA_CRITERIA.items() if name not in SHARING}


def of_each(criteria: dict, step: int = 1):
    """Parametrise by criteria: by default every `step`-th of the table, or all."""
    by_default = [name for name in criteria if name in TABLE][::step]
    return pytest.mark.parametrize("criterion", [
        pytest.param(criterion, id=name, marks=() if name in by_default else SLOW)
        for name, criterion in criteria.items()
    ])  # fmt: skip


TARGETS = ["squared_error", "absolute_error", "poisson", "binary", "multiclass"]

ASPECTS = [
    "plain", "weights", "zero_weights", "missing", "categorical", "monotonic",
    "interaction", "max_features", "l2", "few_bins", "big_era", "rows_per_era",
    "coverage", "min_decrease", "colsample", "penalties", "share_of_era"]  # fmt: skip


@dataclass
class Case:
    """A data set and the parameters to fit it with."""

    X: np.ndarray
    y: np.ndarray
    eras: np.ndarray
    sample_weight: np.ndarray | None = None
    params: dict = field(default_factory=dict)


ALPHAS = [0.0, -1.0, 1.0, -0.1, -30.0, 1e3, -math.inf, math.inf]
AGREEMENTS = [0.0, 0.0, 0.4, 2 / 3, 1.0]
PENALTIES = [0.0, 0.02, 0.3, 1.0, 10.0, 1e12]
STATISTICS = ["effect", "changing_rate"]
WEIGHTS = [0.0, 0.0, 0.0, 0.1, 1.0, 3.0, 50.0]


@st.composite
def criteria(draw) -> dict:
    """Any criterion, with any parameters."""
    alpha, agreement, penalty, statistic, weight = map(
        st.sampled_from, (ALPHAS, AGREEMENTS, PENALTIES, STATISTICS, WEIGHTS)
    )
    flag = st.booleans()

    def any_part(normalizes: st.SearchStrategy, ties: st.SearchStrategy) -> list:
        return [
            st.just("gain"), st.builds(Era, alpha, normalizes),
            st.builds(Directional, agreement, ties, normalizes),
            st.builds(Invariant, penalty, statistic),
            st.builds(VREx, penalty, normalizes),
        ]  # fmt: skip

    parts = st.tuples(*any_part(st.just(False), st.just(0.0)))
    weights = st.builds(partial(zip, strict=True), parts, st.tuples(*5 * [weight]))
    blends = st.builds(Blend, st.builds(dict, weights), flag)
    aggregation = st.sampled_from(["max", "mean", 0.5, 30.0, 1e3])
    least = st.sampled_from([0.0, 0.0, 0.01])
    impurity = st.sampled_from(["squared_error", "standard_deviation"])
    time_robust = st.builds(TimeRobust, aggregation, least, impurity)
    ratio = st.builds(Invariant, penalty, st.just("ratio"))
    blends = blends.filter(lambda blend: any(blend.weights.values()))
    criterion = draw(st.one_of(*any_part(flag, alpha), time_robust, ratio, blends))
    coverage = draw(st.sampled_from([1.0, 1.0, 0.4, 0.1]))
    share = draw(st.sampled_from([0.0, 0.0, 0.3, 0.5, 0.9, 1.0]))
    limits = {"min_era_coverage": coverage, "min_gain_share": share}
    return {"split_criterion": criterion} | limits


def make_case(target: str, aspects, seed: int, n_eras=3, n_samples=90) -> Case:
    """Data whose eras agree in feature 0 and contradict each other in feature 1."""
    rng = np.random.default_rng(seed)
    sizes = rng.dirichlet(np.full(n_eras, 1.0 if "big_era" in aspects else 6.0))
    if "big_era" in aspects and n_eras > 1:
        sizes = np.r_[0.8, np.full(n_eras - 1, 0.2 / (n_eras - 1))]
    codes = rng.choice(n_eras, size=n_samples, p=sizes)
    # Enough for three rows of each era to a side, the largest limit below.
    codes[: 6 * n_eras] = np.arange(6 * n_eras) % n_eras
    rng.shuffle(codes)
    X = rng.normal(size=(n_samples, 3))
    X[:, 1] = X[:, 1].round(1)
    X[:, 2] = rng.integers(0, 4, n_samples)
    if "coverage" in aspects:
        X[:, 0] += 1.5 * (codes % 2)  # eras that overlap little
    slope = np.clip(codes - (n_eras - 1) / 2, -2.5, 2.5)
    score = X[:, 0] + slope * X[:, 1] + (X[:, 2] == 1)
    score = score + 0.5 * rng.normal(size=n_samples)
    y = {
        "squared_error": lambda: score,
        "absolute_error": lambda: score.round(1),
        "poisson": lambda: rng.poisson(np.exp(0.4 * score)).astype(float),
        "binary": lambda: np.array(["no", "yes"])[(score > 0).astype(int)],
        "multiclass": lambda: np.digitize(score, [-0.5, 0.7]) * 10,
    }[target]()

    params = {
        "max_iter": 1 if target == "multiclass" else 2, "learning_rate": 0.7,
        "max_leaf_nodes": int(rng.integers(3, 7)),
        "max_depth": int(rng.choice([2, 3, 4])) if rng.random() < 0.3 else None,
        "min_samples_leaf": int(rng.choice([1, 4, 8])), "max_bins": 12,
        "random_state": seed,
    }  # fmt: skip
    if target in ("squared_error", "absolute_error", "poisson"):
        params["loss"] = target
    if "categorical" in aspects:
        # Category 9 is rare: too little support to leave the right side.
        shares = [0.3, 0.25, 0.25, 0.15, 0.05]
        X[:, 0] = rng.choice([0, 1, 2, 3, 9], n_samples, p=shares)
        X[rng.random(n_samples) < 0.15, 0] = np.nan
        params["categorical_features"] = [0]
    if "missing" in aspects:
        X[rng.random(X.shape) < 0.2] = np.nan
    if "monotonic" in aspects and target != "multiclass":
        params["monotonic_cst"] = [0 if "categorical" in aspects else 1, -1, 0]
    simple = {
        "interaction": {"interaction_cst": [(0, 1), (2, 1)]},
        "max_features": {"max_features": 0.5},
        "colsample": {"colsample_bytree": 0.5},
        "l2": {"l2_regularization": 3.0},
        "share_of_era": {"min_samples_per_era": 0.15},
    }
    for aspect in simple.keys() & aspects:
        params |= simple[aspect]
    if "few_bins" in aspects:
        params["max_bins"] = 5 if "categorical" in aspects else int(rng.choice([2, 4]))
    if "rows_per_era" in aspects:
        params["min_samples_per_era"] = int(rng.integers(2, 4))
    if "coverage" in aspects:
        params["min_samples_per_era"] = int(rng.integers(1, 4))
        params["min_era_coverage"] = float(rng.choice([0.01, 0.3, 0.5, 0.8]))
    if "min_decrease" in aspects:
        params["min_impurity_decrease"] = 10 ** rng.uniform(-3, -1)
    if "penalties" in aspects:
        penalties = rng.choice([0.0, 0.05, 0.3, 0.3, 0.8, 1.0, np.inf], X.shape[1])
        penalties[rng.integers(X.shape[1])] = rng.choice([0.0, 0.1, 0.5])
        params["feature_penalty"] = penalties.tolist()
    weight = None
    if "weights" in aspects:
        weight = rng.uniform(0.1, 3.0, n_samples)
    if "zero_weights" in aspects:
        weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=n_samples)
    labels = np.array(["w", "e", "n", "s", "z", "a"])
    eras = labels[codes] if n_eras <= len(labels) else -7 * codes
    return Case(X, y, eras, weight, params)


def parameter(criterion: dict, name: str, default=0.0):
    """A parameter of the object that a criterion of the table is."""
    return getattr(criterion["split_criterion"], name, default)


def asks_for_rates(criterion: dict) -> bool:
    return parameter(criterion, "statistic") == "ratio"


def suit(case: Case, criterion: dict) -> Case:
    """The case with a target of 0 and 1, or rows that weigh the same, if need be."""
    if parameter(criterion, "impurity", "") == "standard_deviation":
        is_number, y = case.y.dtype.kind == "f", case.y
        y = y if is_number else np.unique(y, return_inverse=True)[1].astype(float)
        is_absolute = case.params.get("loss") == "absolute_error"
        loss = {"loss": "absolute_error" if is_absolute else "squared_error"}
        return replace(case, y=y, sample_weight=None, params=case.params | loss)
    if not asks_for_rates(criterion) or len(set(case.y.tolist())) == 2:
        return case
    return replace(case, y=(case.y > np.median(case.y)).astype(case.y.dtype))


def fit_case(case: Case, **params):
    """The regressor, fitted to a target of floats, or the classifier to any other.

    Splits cover all eras, unless `params` or, before them, the case have another share.
    """
    estimator = Regressor if case.y.dtype.kind == "f" else Classifier
    own = {"min_era_coverage"} & case.params.keys()
    params = criteria_table.COVER_ALL | case.params | params
    params |= {name: case.params[name] for name in own}
    est = estimator(**params, early_stopping=False)
    return est.fit(case.X, case.y, case.sample_weight, eras=case.eras)


def first_tree(est) -> np.ndarray:
    """The nodes of the first tree."""
    return est._predictors[0][0].nodes


def fit_and_check(case: Case, **params) -> Report:
    """Fit, and check the trees; the warning about a constant model is checked too."""
    case = suit(case, params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est = fit_case(case, **params)
    report = check_fit(est, case.X, case.y, case.eras, case.sample_weight)
    _check_warnings(est, case, report, [str(warning.message) for warning in caught])
    bins, missing = est._bin_mapper, est._bin_mapper.missing_values_bin_idx_
    X_binned = bins.transform(est._preprocess_X(case.X, reset=False))
    binned = est._baseline_prediction + sum(
        np.column_stack([tree.predict_binned(X_binned, missing, 1) for tree in trees])
        for trees in est._predictors
    )
    # The thresholds and bitsets of raw values send every row to the leaf it was in.
    np.testing.assert_allclose(est._raw_predict(case.X), binned, rtol=1e-12, atol=1e-12)
    return report


def _check_warnings(est, case: Case, report: Report, messages: list[str]) -> None:
    n_eras = len(set(case.eras.tolist()))
    rules = rules_of(est, n_eras)
    is_constant = report.n_splits == 0 and not rules.is_gain
    of_constant = [m for m in messages if "No split was admissible" in m]
    assert len(of_constant) == is_constant, messages
    about = "decides few splits|Trees end early|have no split|monotonic_cst is not kept"
    values = np.asarray(case.X, dtype=object)
    if np.all(values != values, axis=0).any():  # NaN
        about += "|have no value"
    others = [m for m in messages if m not in of_constant and not re.search(about, m)]
    if n_eras > 1 or rules_of(est, 2).is_gain:
        assert not others
    elif rules.is_gain or rules.is_only("time_robust"):
        assert len(others) == 1
        assert "single era" in others[0]
