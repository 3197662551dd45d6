"""Features that turn: effects by era, their test, importances, prices, the figure."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import false_discovery_control
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import Bunch

from helpers.grids import slow
from sklearn_era import inspection
from sklearn_era._eras import encode_eras
from sklearn_era._tables.columns import read_columns
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import EraStabilityDisplay, era_stability
from sklearn_era.inspection._turning import (
    MAX_SEED,
    Rows,
    find_turning,
    make_design,
    qualitative,
    turning_of,
)
from sklearn_era.preprocessing import EraStandardScaler

ERAS = np.repeat(np.arange(6), 120)
NEEDED = ("effects", "turns")


class Sum(RegressorMixin, BaseEstimator):
    """Predicts the sum of the columns, whatever it is fitted to."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X).sum(axis=1)


def make_data(random_state=0):
    """A feature that holds, one that turns, and one without an effect."""
    rng = np.random.default_rng(random_state)
    X, sign = rng.normal(size=(ERAS.size, 3)), np.where(ERAS < 4, 1, -1)
    return X, X[:, 0] + sign * X[:, 1] + rng.normal(size=ERAS.size)


def test_p_values_are_those_of_the_worst_case():
    """All but one of the effects are nil, and that one is beyond doubt."""
    rng = np.random.default_rng(0)
    for n_eras in (2, 5, 12):
        effects = rng.normal(size=(500, n_eras))
        effects[:, 0] = 100
        p = np.array([qualitative(row, np.ones(n_eras)) for row in effects])
        assert_allclose([qualitative(-row, np.ones(n_eras)) for row in effects], p)
        # Effects that are all larger than their errors do not speak for a turn.
        some = np.any(effects[:, 1:] <= 1, axis=1)
        assert np.all(p[~some] == 1)
        for level in (0.05, 0.2):
            error = np.sqrt(level * (1 - level) / some.sum())
            assert np.mean(p[some] < level) == pytest.approx(level, abs=3 * error)
    assert qualitative(np.array([np.nan, 9.0]), np.ones(2)) == 1
    # Two effects that are reversed are as clear beside many that hold.
    effects = [np.array([-2.5, -2.5] + [5.0] * n) for n in (1, 50)]
    p = [qualitative(x, np.ones(x.size)) for x in effects]
    assert p[0] == pytest.approx(p[1])
    assert p[0] < 0.01


@pytest.mark.parametrize("are_ordered", [False, True])
def test_effects_of_two_values_are_differences_of_means(are_ordered):
    """Errors are those of independent rows, times those of shifted values on what the
    effect leaves, by scores of the effect or of their own; blocks add up eras.
    """
    rng = np.random.default_rng(1)
    codes, weights = np.repeat([0, 1, 2], [60, 40, 20]), rng.uniform(1, 2, 120)
    x = rng.integers(2, size=120)
    y = np.array([2.0, 3.0, -1.0])[codes] * x + rng.normal(size=120)
    design = make_design(codes, 3, are_ordered, np.random.RandomState(0))
    blocks = [[[0], [1], [2]], [[0], [1, 2]]][: 1 + are_ordered]

    def deviations_of(x):
        halves = (design.is_second, ~design.is_second)
        shares = [np.average(x[half], weights=weights[half]) for half in halves]
        return [np.sqrt(share * (1 - share)) for share in shares]

    def measure(x, y, deviations, of_blocks):
        effects, variance, left = 0, 0, np.empty(y.size)
        for half, deviation in zip((False, True), deviations, strict=True):
            sums = np.zeros((3, 3))
            for era in range(3):
                rows = (codes == era) & (design.is_second == half)
                w, d, r = (v[rows] for v in (weights, x.astype(float), y))
                d, r = (v - np.average(v, weights=w) for v in (d, r))
                product, square = (w * d * r).sum(), (w * d * d).sum()
                left[rows] = r - product / square * d
                sums[era] = product, square, ((w * d * left[rows]) ** 2).sum()
            merged = np.array([sums[block].sum(axis=0) for block in of_blocks])
            product, square, noise = merged.T
            effects += product / square * deviation / 2
            variance += noise / square**2 * (deviation / 2) ** 2
        return effects, np.sqrt(variance), left

    found = turning_of(Rows(y[:, np.newaxis], x, codes, weights), 3, design)
    p_values = []
    for of_blocks in blocks:
        deviations = deviations_of(x)
        effects, errors, left = measure(x, y, deviations, of_blocks)
        squares = [[], []]
        for s in design.shifts:
            scales = deviations, deviations_of(x[s])
            for each, scale in zip(squares, scales, strict=True):
                of_shift = measure(x[s], left, scale, of_blocks)
                each.append(np.divide(*of_shift[:2]) ** 2)
        inflation = max(np.mean(each) / (1 - np.mean(each) / 20) for each in squares)
        errors *= np.sqrt(max(1, inflation))
        if len(of_blocks) == 3:
            assert_allclose(found[0], effects)
            assert_allclose(found[1], errors)
        p_values.append(qualitative(effects, errors))
    assert found[2] == pytest.approx(min(1, len(blocks) * min(p_values)))
    assert found[3] == 1 + np.argmin(p_values)


def test_rows_of_an_era_are_parted_and_shifted():
    codes = np.repeat([0, 1, 2], [100, 19, 20])
    design = make_design(codes, 3, False, np.random.RandomState(0))
    assert_array_equal(design.is_used, codes != 1)
    assert_array_equal(design.levels, [[0, 1, 2]])
    levels = make_design(codes, 5, True, np.random.RandomState(0)).levels
    assert [level.tolist() for level in levels] == [[0, 1, 2, 3, 4], [0, 1, 3], [0, 2]]
    used = codes[design.is_used]
    for era, n_rows in ((0, 100), (2, 20)):
        half = design.is_second[used == era]
        assert_array_equal(half, np.repeat(np.arange(10) % 2, n_rows // 10))
    for shift in design.shifts:
        assert_array_equal(used[shift], used)
        for era in (0, 2):
            of_era = shift[used == era]
            by = np.diff(of_era) % (used == era).sum()
            assert_array_equal(by, np.ones(by.size))
            assert of_era[0] != np.flatnonzero(used == era)[0]


def test_rare_categories_share_a_bin_and_missing_values_have_one():
    x = np.where(np.arange(200) % 4 == 0, np.nan, np.arange(200.0))
    letters = pd.Categorical([*"abcdefghijklmno" * 12, *"pqrstuvwxyzpqrstuvwx"])
    columns = read_columns(pd.DataFrame({"letter": letters, "x": x}))
    of_letters, of_x = map(inspection._turning._bins, columns)
    assert sorted(set(of_letters[:180])) == [*range(15)]
    assert set(of_letters[180:]) == {15}
    assert np.bincount(of_x).tolist() == [15] * 10 + [50]
    ends = read_columns(np.array([-np.inf, 0, np.inf]).repeat(50)[:, np.newaxis])
    found = inspection._turning._bins(ends[0])
    assert np.bincount(np.unique(found, return_inverse=True)[1]).tolist() == [50] * 3


def test_a_rare_value_has_a_bin_beside_a_frequent_one():
    rng, eras = np.random.default_rng(0), np.repeat(np.arange(6), 200)
    rare = rng.random(eras.size) < 0.08
    kinds = rare * rng.choice([1.0, 2.0], eras.size)  # of which one turns
    y = np.where(eras < 3, 2, -2) * rare + rng.normal(size=eras.size)
    X = np.column_stack([rare, ~rare, kinds, -kinds, rng.normal(size=eras.size)])
    found = era_stability(X, y, eras=eras, price=False, random_state=0)
    assert found.turns.tolist() == [True] * 4 + [False]


@pytest.mark.parametrize("kind", ["array", slow("pandas"), "polars"])
def test_features_that_turn_are_found_and_on_top_of_the_figure(kind, ax):
    X, y = make_data()
    if kind != "array":
        sign = np.where(X[:, 1] > 0, "up", None)
        X = pd.DataFrame(X, columns=list("abc")).assign(b=sign)
        X["b"] = X["b"].astype("category")
        X = X if kind == "pandas" else pl.from_pandas(X)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, y.size)
    model = HistGradientBoostingRegressor(max_iter=20, early_stopping=False)
    options = {"eras": ERAS, "estimator": model, "price": False, "random_state": 0}
    options["sample_weight"] = weights
    result = era_stability(X, y, **options)
    assert result.turns.tolist() == [False, True, False]
    assert_array_equal(np.sign(result.effects[:, 1]), [1, 1, 1, 1, -1, -1])
    assert np.all(result.effects[:, 0] > 0.5)
    assert np.all(np.abs(result.effects[:, 2]) < 4 * result.errors[:, 2])
    assert_allclose(result.q_value, false_discovery_control(result.p_value))
    assert result.n_merged[1] in {1, 2, 4}
    assert result.mean_importance[0] > 5 * result.importance_error[0]
    with pytest.raises(ValueError, match="stability has no field effects, turns;"):
        EraStabilityDisplay({x: result[x] for x in result if x not in NEEDED})
    display = EraStabilityDisplay(result).plot(ax)
    order = np.argsort(result.p_value, kind="stable")
    assert_allclose(display.image_.get_array(), result.effects[:, order].T)
    low, high = display.image_.get_clim()
    assert (-low, high) == (high, np.quantile(np.abs(result.effects), 0.9))
    texts = ax.get_yticklabels()
    assert texts[0].get_text() == ("x1" if kind == "array" else "b")
    assert [text.get_fontweight() for text in texts] == ["bold", "normal", "normal"]
    assert len(display.plot(max_features=2).image_.get_array()) == 2
    with pytest.raises(ValueError, match="max_features must be 1 or more; got 0"):
        display.plot(ax, max_features=0)
    if kind == "polars":
        frames = era_stability(X, y, as_frame=True, **options)
        assert_allclose(frames.effects, result.effects)
        assert list(frames.turns.index) == list("abc")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_turn_too(n_classes):
    X, y = make_data()
    y = np.array(["a", "b", "c"])[np.digitize(y, [0, 1][: n_classes - 1])]
    model = LogisticRegression()
    result = era_stability(X, y, eras=ERAS, estimator=model, price=False)
    assert result.era_order == "ordered"
    assert result.turns.tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [np.int64, float, object])
def test_counts_are_numbers_to_the_default_model(dtype):
    X, y = make_data()
    counts = np.round(5 * (y - y.min()))
    given = {"eras": ERAS, "random_state": 0, "price": False, "n_repeats": 1, "cv": 2}
    found = era_stability(X, counts.astype(dtype), **given)
    seed = np.random.RandomState(0).randint(MAX_SEED)
    model = HistGradientBoostingRegressor(early_stopping=False, random_state=seed)
    assert found.effects.shape == (6, 3)
    rng = np.random.RandomState(0)
    rng.randint(MAX_SEED)
    given |= {"random_state": rng, "estimator": model}
    assert_array_equal(found.effects, era_stability(X, counts, **given).effects)


def test_one_shape_whose_values_move_does_not_turn():
    """The effect of a temperature falls in winter and rises in summer."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=ERAS.size) / 2 + np.linspace(-2, 2, 6)[ERAS]
    y = x**2 + rng.normal(size=x.size)
    slopes = [np.polyfit(x[e == ERAS], y[e == ERAS], 1)[0] for e in (0, 5)]
    assert slopes[0] < -1 < 1 < slopes[1]
    options = {"estimator": LinearRegression(), "price": False, "random_state": 0}
    result = era_stability(x[:, np.newaxis], y, eras=ERAS, **options)
    assert result.p_value[0] > 0.5
    assert np.all(result.effects > 0)


def test_importances_are_losses_with_values_of_training_rows():
    X, y = make_data()
    folds = GroupKFold(3)
    options = {"estimator": Sum(), "cv": folds, "n_repeats": 200, "price": False}
    result = era_stability(X, y, eras=ERAS, random_state=0, **options)
    for train, test in folds.split(X, groups=ERAS):
        for era in np.unique(ERAS[test]):
            rows = era == ERAS
            left = (y - X.sum(axis=1) + X[:, 1])[rows, np.newaxis]
            expected = np.mean((left - X[train, 1]) ** 2)
            expected -= mean_squared_error(y[rows], X[rows].sum(axis=1))
            assert result.importances[era, 1] == pytest.approx(expected, abs=0.15)
    assert_allclose(result.mean_importance, result.importances.mean(axis=0))


def test_rows_that_are_tested_twice_count_once():
    X, y = make_data()
    rng, rows = np.random.default_rng(0), np.arange(y.size)
    weights, off = rng.uniform(1, 2, y.size), rng.normal(size=(3, 300, 1))
    residuals = np.repeat(y[np.newaxis, :, np.newaxis], 3, axis=0)
    again = rows[-300:]  # eras 4 and 5 and half of 3
    twice = np.concatenate([residuals, residuals[:, again] - off], axis=1)
    twice[:, again] += off
    columns, eras, found = read_columns(X), encode_eras(ERAS), []
    for own, left in ((rows, residuals), (np.append(rows, again), twice)):
        measured = Bunch(rows=own, residuals=left, weights=weights)
        seed = np.random.RandomState(0)
        found.append(find_turning(columns, eras, measured, True, seed))
    for name, expected in found[0].items():
        assert_allclose(found[1][name], expected)
    # 15 rows of an era are too few, however often they are tested.
    kept = np.arange(y.size) % 8 == 0
    folds = list(GroupKFold(3).split(X[kept], groups=ERAS[kept])) * 4
    given = {"estimator": LinearRegression(), "cv": folds, "price": False}
    result = era_stability(X[kept], y[kept], eras=ERAS[kept], **given)
    assert np.isnan(result.effects).all()


def test_prices_are_scores_without_the_feature():
    X, y = make_data()
    options = {"estimator": LinearRegression(), "era_order": "unordered"}
    result = era_stability(X, y, eras=ERAS, as_frame=True, **options)
    assert result.price["dropped"].tolist() == ["x1"]
    known, new = KFold(3, shuffle=True, random_state=0), GroupKFold(3)
    for name, folds in {"known": known, "new": new}.items():
        found = []
        for train, test in folds.split(X, groups=ERAS if name == "new" else None):
            full, rest = (
                LinearRegression().fit(X[train][:, c], y[train]).predict(X[test][:, c])
                for c in ([0, 1, 2], [0, 2])
            )
            rise = (full - y[test]) ** 2 - (rest - y[test]) ** 2
            found.append([rise[ERAS[test] == e].mean() for e in np.unique(ERAS[test])])
        by_era = np.mean(found, axis=0) if name == "known" else np.concatenate(found)
        assert result.price[name][0] == pytest.approx(by_era.mean())
        assert result.price[f"{name}_error"][0] > 0
    X[:, 2] = X[:, 1] + np.random.default_rng(0).normal(size=len(X)) / 2
    result = era_stability(X, y, eras=1 * (ERAS >= 4), estimator=LinearRegression())
    assert result.price["dropped"] == ["x2", "x1", "x1, x2"]


def test_losses_of_classes_that_a_fold_lacks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 1)), np.repeat([0, 1, 2, 3], 50)
    eras = np.repeat(np.arange(4), 50) % 2  # one has the classes 0 and 2
    result = era_stability(X, y, eras=eras, estimator=LogisticRegression(), price=False)
    assert_allclose(result.importances, 0, atol=1e-9)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"eras": None}, "era_stability needs eras: pass eras="),
    ({"eras": ERAS[1:]}, "eras has 719 labels, but X has 720 rows"),
    ({"eras": ERAS * 0}, "holds 1 label.* era_stability tests on eras"),
    ({"eras": np.array(["a", "b"])[ERAS % 2]}, "Labels are text such as 'a'"),
    ({"estimator": LinearSVC()}, "LinearSVC is a classifier without predict_proba"),
    ({"alpha": 1.0}, "'alpha' parameter"), ({"n_repeats": 0}, "'n_repeats' parameter"),
    ({"y": np.zeros(3)}, "y has 3 rows, but X has 720"),
])  # fmt: skip
def test_stability_refuses(parameters, message):
    X, y = make_data()
    options = {"X": X, "y": y, "eras": ERAS} | parameters
    with pytest.raises(ValueError, match=message):
        era_stability(**options)


@pytest.mark.parametrize("classes", [False, slow(True)])
def test_transformers_get_the_eras_of_rows(classes):
    X, y = make_data()
    X[:, 0] += 5 * np.arange(6)[ERAS]
    model = LogisticRegression() if classes else LinearRegression()
    y = y > 0 if classes else y
    scaler = EraStandardScaler(smooth=0)
    options = {"eras": ERAS, "price": False, "random_state": 0}
    found = era_stability(X, y, estimator=make_pipeline(scaler, model), **options)
    Z = scaler.fit_transform(X, eras=ERAS)
    expected = era_stability(Z, y, estimator=model, **options)
    assert_allclose(found.mean_importance[0], expected.mean_importance[0], rtol=0.15)


def test_progress_is_a_line_a_step(capsys):
    X, y = make_data()
    options = {"eras": ERAS, "cv": 2, "random_state": 0}
    era_stability(X, y, estimator=LinearRegression(), verbose=1, **options)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("era_stability 2/4 steps: fitted 2 models; about ")
    assert lines[2] == "era_stability 4/4 steps: measured features in fold 2 of 2"
    ending = "scores: in new eras, without features that turn"
    assert lines[4] == f"era_stability 2/2 {ending}"
    inspection.era_permutation_importance(
        LinearRegression(), X, y, verbose=1, **options
    )
    assert "era_permutation_importance 4/4 steps:" in capsys.readouterr().out
    era_stability(X, y, estimator=LinearRegression(), **options)
    assert capsys.readouterr().out == ""
