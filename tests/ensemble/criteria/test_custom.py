"""Criteria in NumPy: the papers' ones, written anew, grow the trees of the kernel."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from helpers.data import make_data
from helpers.estimators import ours
from helpers.trees import assert_same_trees, trees_of
from sklearn_era import criteria
from sklearn_era.criteria import Blend, CustomCriterion, Era, Invariant, SplitKeys
from sklearn_era.criteria._blend import as_criterion
from sklearn_era.criteria._criteria import SplitCriterion
from sklearn_era.ensemble import EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_files import ModelFileError, save_model

REL_TOL = 2.0**-21


class Compared(NamedTuple):
    """Gains and effects of eras, by the formulas of the docs."""

    informative: np.ndarray
    gains: np.ndarray
    effects: np.ndarray


def compare(splits, l2=None) -> Compared:
    (G_L, H_L, n_L), (G_R, H_R, n_R) = splits.left, splits.right
    l2 = splits.l2_regularization if l2 is None else l2
    informative = np.minimum(n_L, n_R) >= splits.min_samples_per_era
    informative &= np.minimum(H_L, H_R) > 0
    a, b = np.where(informative, (H_L, H_R), 1.0) + l2
    G_L, G_R = np.where(informative, (G_L, G_R), 0.0)
    contrasts = G_R * a - G_L * b
    alike = np.abs(contrasts) <= REL_TOL * np.maximum(abs(G_R * a), abs(G_L * b))
    contrasts = np.where(alike, 0.0, contrasts)
    gains = contrasts**2 / (a * b * (a + b))
    if l2 > 0:
        gains -= l2 * (G_L + G_R) ** 2 / ((a + b) * (a + b - l2))
    return Compared(informative, gains, contrasts / (a * b))


def valid(keys, which):
    return np.where(which, keys, -np.inf)


class NumPyEra(CustomCriterion):
    def __init__(self, worst=False, rule=None):
        self.worst, self.rule = worst, rule

    def keys(self, splits):
        gains = compare(splits).gains
        keys = gains.min(axis=1) if self.worst else gains.mean(axis=1)
        return valid(keys, keys > 0)


class NumPyDirectional(CustomCriterion):
    def keys(self, splits):
        eras = compare(splits)
        agreement = np.abs(np.sign(eras.effects).mean(axis=1))
        ties = eras.gains.mean(axis=1)
        return SplitKeys(valid(agreement, (agreement > 0) & (ties > 0)), ties)


class NumPyInvariant(CustomCriterion):
    def keys(self, splits):
        eras = compare(splits)
        n = np.maximum(eras.informative.sum(axis=1), 1)[:, None]
        means = (eras.effects * eras.informative).sum(axis=1, keepdims=True) / n
        squares = (eras.effects - means) ** 2 * eras.informative / n
        keys = splits.pooled_gains - splits.sum_hessians * squares.sum(axis=1)
        return valid(keys, splits.pooled_gains > 0)


class NumPyTimeRobust(CustomCriterion):
    def __init__(self, mean=False, rule=None):
        self.mean, self.rule = mean, rule

    def keys(self, splits):
        (G_L, H_L, n_L), (G_R, H_R, n_R) = splits.left, splits.right
        informative, gains, _ = compare(splits, l2=0.0)
        H = np.maximum(H_L + H_R, np.finfo(float).tiny)
        decreases = gains / H
        impurities = splits.impurities - decreases
        least = REL_TOL**2 * (splits.impurities + ((G_L + G_R) / H) ** 2)
        impurities[impurities < least] = 0.0  # rounding
        decreases *= (n_L + n_R) / splits.era_sizes
        if self.mean:
            impurities, decreases = impurities.mean(axis=1), decreases.mean(axis=1)
        else:
            impurities = valid(impurities, informative).max(axis=1)
            decreases = np.where(informative, decreases, np.inf).min(axis=1)
        is_valid = (decreases > 0) & informative.any(axis=1)
        priority = np.where(is_valid, decreases, 0.0)
        return SplitKeys(valid(-impurities, is_valid), priority=priority)


class Broken(CustomCriterion):
    def __init__(self, fault, rule=None):
        self.fault, self.rule = fault, rule

    def keys(self, splits):
        n = splits.pooled_gains.size
        if self.fault == "error":
            raise ZeroDivisionError("the user's own")
        return {"shape": np.ones(n + 1), "nan": np.full(n, np.nan), "none": None,
                "text": np.full(n, "a"),
                "one": SplitKeys(1, 1)}[self.fault]  # fmt: skip


class Refusing(CustomCriterion):
    def keys(self, splits):
        return np.full(splits.pooled_gains.size, -np.inf)


PAIRS = [
    (Era(), NumPyEra()), (Era(-np.inf), NumPyEra(worst=True)),
    (criteria.Directional(), NumPyDirectional()), (Invariant(), NumPyInvariant()),
    (criteria.TimeRobust(), NumPyTimeRobust()),
    (criteria.TimeRobust("mean"), NumPyTimeRobust(mean=True)),
]  # fmt: skip


def random_fit(seed):
    """Draw an estimator, its data, and the two criteria."""
    rng = np.random.default_rng(seed)
    n, n_eras = int(rng.integers(60, 700)), int(rng.integers(2, 9))
    X = rng.normal(size=(n, 4))
    if rng.random() < 0.5:  # few values: bundles with masks
        X = X.round()
    X[:, 3] = rng.integers(0, 6, size=n)
    X[rng.random(size=(n, 4)) < rng.choice([0.0, 0.1])] = np.nan
    eras = rng.integers(n_eras, size=n)
    signal = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * (eras % 2)
    y, is_classifier = signal + rng.normal(size=n), rng.random() < 0.3
    parameters = {
        "max_iter": 3, "min_samples_leaf": int(rng.integers(1, 20)),
        "l2_regularization": float(rng.choice([0.0, 2.0])),
        "min_gain_share": float(rng.choice([0.0, 0.5, 0.9])),
        "min_era_coverage": float(rng.choice([0.1, 0.5, 1.0])),
        "min_samples_per_era": [1, 3, 0.1][rng.integers(3)],
        "max_leaf_nodes": [31, None][rng.integers(2)], "max_depth": 6,
        "categorical_features": [[3], None][rng.integers(2)],
        "monotonic_cst": [[1, 0, 0, 0], None][rng.integers(2)],
        "max_features": float(rng.choice([0.5, 1.0])),
        "random_state": 0, "early_stopping": False,
    }  # fmt: skip
    weights = rng.uniform(0.5, 2.0, size=n) if rng.random() < 0.3 else None
    if not is_classifier and rng.random() < 0.3:
        parameters["loss"], y = "poisson", np.exp(y / 3)
    y = (y > np.median(y)).astype(int) if is_classifier else y
    target = "binary" if is_classifier else "real"
    return ours(target, **parameters), X, y, eras, weights


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(34))
def test_papers_criteria_grow_the_kernels_trees(seed):
    model, X, y, eras, weights = random_fit(seed)
    for ours_, own in PAIRS:  # 204 fits of each
        a, b = (
            clone(model).set_params(split_criterion=criterion)
            .fit(X, y, weights, eras=eras)
            for criterion in (ours_, own)
        )  # fmt: skip
        assert_same_trees(a, b)


@pytest.mark.parametrize(("compiled", "own"), PAIRS)
def test_forests_and_blends_take_them(compiled, own):
    X, y, _, eras = make_data(n_samples=600)
    a, b = (
        EraForestRegressor(
            n_estimators=5, max_leaf_nodes=12, bootstrap="whole_eras", random_state=0,
            split_criterion=criterion,
        ).fit(X, y, eras=eras)
        for criterion in (compiled, own)
    )  # fmt: skip
    assert_same_trees(a, b)
    if not isinstance(compiled, Era | Invariant):
        return  # a refused split is refused by the blend
    blends = (Blend({x: 1.0, "vrex": 0.3}, normalize=False) for x in (compiled, own))
    fits = (Regressor(max_iter=5, split_criterion=blend) for blend in blends)
    assert_same_trees(*(model.fit(X, y, eras=eras) for model in fits))


def test_keys_get_the_sums_of_every_era():
    X, y, _, eras = make_data(n_samples=300)
    seen = []

    class Seeing(CustomCriterion):
        def keys(self, splits):
            seen.append((splits, splits.impurities))  # of the node at hand
            return splits.pooled_gains

    model = Regressor(
        max_iter=1, split_criterion=Seeing(), min_gain_share=0, max_leaf_nodes=2
    ).fit(X, y, eras=eras)
    gradients, (node,) = y.mean() - y, trees_of(model)[0].nodes[:1]
    splits, impurities = seen[0]
    best = int(splits.pooled_gains.argmax())
    goes_left = X[:, node["feature_idx"]] <= node["num_threshold"]
    for j, era in enumerate(np.unique(eras)):
        values = []
        for side, rows in ((splits.left, goes_left), (splits.right, ~goes_left)):
            own = gradients[rows & (eras == era)]
            assert side.gradients[best, j] == pytest.approx(own.sum(), abs=1e-4)
            assert side.hessians[best, j] == side.counts[best, j] == own.size > 0
            values.append(-own.mean())
        assert splits.effects[best, j] == pytest.approx(values[0] - values[1], 1e-4)
        assert impurities[j] == pytest.approx(gradients[eras == era].var(), rel=1e-4)
        assert splits.covered[best, j]
    np.testing.assert_array_equal(splits.era_labels, np.unique(eras))
    assert splits.sum_hessians == y.size
    assert splits.gradient_variance == pytest.approx(y.var(), rel=1e-5)


@pytest.mark.parametrize(("fault", "error", "message"), [
    ("error", ZeroDivisionError, "the user's own"),
    ("shape", ValueError, "keys returned an array of shape .* return one number"),
    ("none", ValueError, "Broken.keys returned None for .* splits; return one"),
    ("text", ValueError, "shape .* and dtype <U1 for .* splits; return one number"),
    ("one", ValueError, r"an array of shape \(\) and dtype int64 for .* return one n"),
    ("nan", ValueError, "Broken.keys returned nan for .* splits; return -inf"),
])  # fmt: skip
@pytest.mark.parametrize("n_threads", [1, 2])
def test_errors_end_the_fit(fault, error, message, n_threads):
    X, y, _, eras = make_data(n_samples=4000)
    model = Regressor(max_iter=3, split_criterion=Broken(fault))
    with threadpool_limits(n_threads), pytest.raises(error, match=message):
        model.fit(X, y, eras=eras)
    model.set_params(split_criterion=NumPyEra()).fit(X, y, eras=eras)


def test_only_splits_that_cover_enough_eras_are_asked_about():
    X, y, _, eras = make_data(n_samples=300)
    rows = (X[:, 1] < 0) | (eras != 2)  # one side only of an era
    seen = []

    class Seeing(CustomCriterion):
        def keys(self, splits):
            seen.append(splits.covered.all())
            return splits.pooled_gains

    Regressor(max_iter=2, min_era_coverage=1.0, split_criterion=Seeing()).fit(
        X[rows], y[rows], eras=eras[rows]
    )
    assert len(seen) > 2
    assert all(seen)


def test_a_criterion_may_look_at_every_era_whatever_it_covers():
    X, y, _, eras = make_data(n_samples=300)
    X = np.nan_to_num(X[:, :2]) + 100 * eras[:, np.newaxis]  # splits part eras

    class Gain(CustomCriterion):
        asks_coverage = False
        least = 0.0

        def keys(self, splits):
            return valid(splits.pooled_gains, splits.pooled_gains > self.least)

    plain = Regressor(split_criterion="gain", max_iter=3)
    own = clone(plain).set_params(split_criterion=Gain(), min_gain_share=0.0)
    own.set_params(min_era_coverage=1.0).fit(X, y, eras=eras)
    np.testing.assert_allclose(own.predict(X), plain.fit(X, y).predict(X))
    Gain.least = np.inf
    message = "split must leave min_samples_leaf rows on both sides, and improve on"
    with pytest.warns(UserWarning, match=message):
        own.fit(X, y, eras=eras)


def test_refused_splits_are_left_to_the_gain_or_to_nobody():
    X, y, _, eras = make_data(n_samples=300)
    plain = Regressor(split_criterion="gain", max_iter=3)
    own = clone(plain).set_params(split_criterion=Refusing()).fit(X, y, eras=eras)
    plain.fit(X, y, eras=eras)
    assert [tree.nodes.size for tree in trees_of(own)] == [
        tree.nodes.size for tree in trees_of(plain)
    ]
    own.set_params(split_criterion=Refusing(rule="every_era"))
    with pytest.warns(UserWarning, match="predicts a constant"):
        own.fit(X, y, eras=eras)


def test_objects_are_scikit_learns():
    X, y, _, eras = make_data(n_samples=300)
    model = Regressor(split_criterion=NumPyEra(), max_iter=3)
    search = GridSearchCV(model, {"split_criterion__worst": [True, False]}, cv=2).fit(
        X, y, eras=eras
    )
    assert search.best_params_.keys() == {"split_criterion__worst"}
    model.fit(X, y, eras=eras)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.split_criterion == NumPyEra() != NumPyEra(worst=True)
    assert repr(copy.split_criterion) == "NumPyEra()"
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    with pytest.raises(ModelFileError, match="NumPyEra, which a model file cannot"):
        save_model(model, "never.era")


class Inherited(Era):
    pass


class Unknown(SplitCriterion):
    name = "unknown"


@pytest.mark.parametrize(("criterion", "message"), [
    (Inherited(), "compiled code would compute the key of Era instead. Derive"),
    (Unknown(), "no compiled code computes its key. Derive Unknown from"),
    (Blend({Inherited(): 1, "gain": 1}), "the key of Era instead")])  # fmt: skip
def test_keys_that_nobody_would_compute_are_refused(criterion, message):
    X, y, _, eras = make_data(n_samples=300)
    with pytest.raises(TypeError, match=message):
        Regressor(split_criterion=criterion).fit(X, y, eras=eras)
    with pytest.raises(NotImplementedError, match="CustomCriterion defines no keys"):
        Regressor(split_criterion=CustomCriterion()).fit(X, y, eras=eras)
    with pytest.raises(ValueError, match="a blend has one CustomCriterion at most"):
        as_criterion({NumPyEra(): 1, NumPyDirectional(): 1})
    for value in (NumPyEra, len):
        with pytest.raises(ValueError, match=r"Pass an object, as MyCriterion\(\)"):
            Regressor(split_criterion=value).fit(X, y, eras=eras)
