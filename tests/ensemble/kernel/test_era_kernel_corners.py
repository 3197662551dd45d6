"""The era kernel at the ends of its ranges: of codes, of bundles and of gradients."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers.kernel_fits import (
    CRITERIA,
    SUMS_UP,
    RecordingSplitter,
    assert_same_nodes,
    fit,
    make_eras,
)
from oracle.reference import check_fit
from sklearn_era.ensemble import HistGradientBoostingRegressor

SUMMING = pytest.mark.parametrize("criterion", [CRITERIA[n] for n in SUMS_UP])
STORED_OR_NOT = pytest.mark.parametrize("store_budget", [0, None])


# Codes and bundles.


@pytest.mark.parametrize("is_categorical", [False, True])
@pytest.mark.parametrize("name", ["directional", "invariant"])
def test_all_codes_of_a_byte(name, is_categorical):
    # 255 bins and missing values are 256 codes, of a single feature.
    rng = np.random.default_rng(0)
    x = np.tile(np.arange(256.0), 8)
    x[x == 255] = np.nan
    eras = rng.permutation(np.arange(x.size) % 4)
    y = np.round(20 * np.sin(np.nan_to_num(x, nan=300) / 40) + rng.normal(size=x.size))
    params = {"max_iter": 1, "max_leaf_nodes": 4, "categorical_features": None}
    if is_categorical:
        params["categorical_features"] = [0]
    X = x[:, None]
    # What has less support than ten rows is no category to split off.
    y, eras, X = (np.repeat(values, 2, axis=0) for values in (y, eras, X))
    model, _ = fit((X, y, eras), CRITERIA[name], **params)
    assert model._bin_mapper.n_bins_non_missing_[0] == 255
    assert check_fit(model, X, y, eras).n_splits == 3


@STORED_OR_NOT
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_largest_bundles(store_budget, missing):
    # Eight features of two codes, or five of three: 256 and 243 combinations.
    X, y, eras = make_eras(4, 300, n_bins=2, n_features=9, missing=missing)
    model, _ = fit((X, y, eras), CRITERIA["directional"], store_budget=store_budget)
    assert check_fit(model, X, y, eras).n_splits > 6


@STORED_OR_NOT
def test_features_of_a_single_bin(store_budget):
    X, y, eras = make_eras(4, 200, n_bins=4)
    expected, _ = fit((X, y, eras), CRITERIA["era"], store_budget=store_budget)
    constant = np.ones((len(y), 10))
    padded = np.hstack([constant, X[:, :2], constant, X[:, 2:], constant])
    model, _ = fit((padded, y, eras), CRITERIA["era"], store_budget=store_budget)
    assert_same_nodes(expected, model, features=[10, 11, 22, 23])


# Gradients: integers to sum up, as long as they have the digits.


@SUMMING
@pytest.mark.parametrize("exponent", [-90, 90])
def test_the_unit_of_the_target_does_not_change_a_bit(criterion, exponent):
    X, y, eras = make_eras(3, 500, n_bins=5)
    model, splitter = fit((X, y, eras), criterion, splitter=RecordingSplitter)
    assert any(is_kept for _, is_kept in splitter.nodes_stored)
    if exponent < 0:  # gains are squares
        exponent //= 2
    scaled, _ = fit((X, np.ldexp(y, exponent), eras), criterion)
    for ours, theirs in zip(model._predictors, scaled._predictors, strict=True):
        for name in ("feature_idx", "bin_threshold", "is_leaf", "count"):
            assert np.array_equal(ours[0].nodes[name], theirs[0].nodes[name])
        values = np.ldexp(ours[0].nodes["value"], exponent)
        assert np.array_equal(values, theirs[0].nodes["value"])


@pytest.mark.parametrize("outlier", [1e9, 1e12, 1e15])
def test_an_outlier_does_not_take_the_digits_of_other_rows(outlier):
    X, y, eras = make_eras(5, 4000, n_bins=8)
    y = y / 100
    y[0] = outlier
    params = {
        "max_iter": 60, "learning_rate": 0.5, "max_leaf_nodes": 31,
        "min_samples_leaf": 1, "min_era_coverage": 0.2,
    }  # fmt: skip
    model, _ = fit((X, y, eras), {"split_criterion": "era"}, **params)
    gain = HistGradientBoostingRegressor(early_stopping=False, **params).fit(X, y)
    # Rows that share no leaf with the outlier.
    errors = [np.median(abs(m.predict(X) - y)) for m in (model, gain)]
    assert errors[0] < 2 * errors[1] < 1


def test_gradients_that_are_too_large_for_a_float_do_no_harm():
    X, y, eras = make_eras(5, 100, n_bins=8)
    y[:3] = 1e300
    est = HistGradientBoostingRegressor(
        split_criterion="era", max_iter=2, early_stopping=False
    )
    with pytest.warns():  # of overflows, as of scikit-learn's own splitter
        est.fit(X, y, eras=eras)
    assert est.n_iter_ == 2


def test_equal_targets_have_nothing_to_split():
    X, _, eras = make_eras(5, 100, n_bins=8)
    est = HistGradientBoostingRegressor(split_criterion="era", early_stopping=False)
    with pytest.warns(UserWarning, match="No split was admissible"):
        est.fit(X, np.full(len(X), 3.0), eras=eras)
    assert np.array_equal(est.predict(X), np.full(len(X), 3.0))


# Many fits.


def test_a_fit_again_with_other_data_forgets_the_first():
    X, y, eras = make_eras(3, 500, n_bins=5)
    others = make_eras(40, 15, n_bins=64, n_features=7, missing=0.1)
    est = HistGradientBoostingRegressor(
        split_criterion="era", max_iter=3, min_era_coverage=0.3, early_stopping=False
    )
    first = est.fit(X, y, eras=eras).predict(X)
    est.fit(others[0], others[1], eras=others[2])
    assert np.array_equal(est.fit(X, y, eras=eras).predict(X), first)


def test_fits_at_the_same_time_do_not_disturb_each_other():
    def fit_and_predict(i):
        X, y, eras = make_eras(3 + 30 * (i % 2), 200, n_bins=5 + 40 * (i % 3), seed=i)
        est = HistGradientBoostingRegressor(
            split_criterion="directional",
            max_iter=3,
            min_era_coverage=0.3,
            early_stopping=False,
        )
        return est.fit(X, y, eras=eras).predict(X)

    expected = [fit_and_predict(i) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for ours, theirs in zip(
            expected, pool.map(fit_and_predict, range(8)), strict=True
        ):
            assert np.array_equal(ours, theirs)
