"""Statistics by era, by brute force and other packages, and eras in pipelines."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import RobustScaler, StandardScaler

from helpers.grids import from_1_9, on_grid
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import EraConformalRegressor
from sklearn_era.ensemble import EraForestRegressor, JustTrainTwice
from sklearn_era.ensemble import HistGradientBoostingRegressor as Booster
from sklearn_era.metrics import make_era_scorer
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.numerai.metrics import gaussianize, neutralize, rank_normalize
from sklearn_era.preprocessing import (
    EraNeutralizer,
    EraRankTransformer,
    EraStandardScaler,
    EraTargetEncoder,
    EraTargetRegressor,
    EraTargetTransformer,
    _ranks,
)

RNG = np.random.default_rng(0)
ERAS = np.repeat(np.array(["a", "b", "c", "d"]), [3, 20, 60, 137])
ORDER = RNG.permutation(ERAS.size)
LEVELS = RNG.normal(size=(4, 5))[np.unique(ERAS, return_inverse=True)[1]]
X = RNG.normal(size=(ERAS.size, 5)) + 3 * LEVELS
X[:, 1] = X[:, 1].round()
X, ERAS = X[ORDER], ERAS[ORDER]
WITH_NAN = X.copy()
WITH_NAN[(RNG.random(X.shape) < 0.2) & (ERAS != "a")[:, None]] = np.nan
WITH_NAN[:, 0] = X[:, 0]
WEIGHTS = RNG.integers(0, 4, ERAS.size) + (ERAS == "a")
K = 7.0
TRANSFORMERS = [
    EraRankTransformer(smooth=K),
    EraRankTransformer(output_distribution="normal", smooth=K),
    EraStandardScaler(smooth=K), EraStandardScaler(smooth=K, robust=True),
    EraNeutralizer([0], smooth=K), EraTargetTransformer(smooth=K),
]  # fmt: skip
each = pytest.mark.parametrize("transformer", TRANSFORMERS, ids=repr)


def apart(transform, *columns):
    """Apply a function to the rows of each era."""
    out = np.full(X.shape, np.nan)
    for era in set(ERAS):
        out[era == ERAS] = transform(*(column[era == ERAS] for column in columns))
    return out


def ranks(x):
    return (rankdata(x, axis=0, nan_policy="omit") - 0.5) / (~np.isnan(x)).sum(axis=0)


@pytest.mark.parametrize(("transformer", "expected"), [
    (EraRankTransformer(), ranks),
    (EraRankTransformer(output_distribution="normal"), lambda x: norm.ppf(ranks(x))),
    (EraStandardScaler(), StandardScaler().fit_transform),
    (EraStandardScaler(with_scaling=False), lambda x: x - np.nanmean(x, axis=0)),
    (EraStandardScaler(with_centering=False),
     StandardScaler(with_mean=False).fit_transform),
    (EraStandardScaler(robust=True, with_scaling=False),
     RobustScaler(with_scaling=False).fit_transform),
], ids=lambda value: None if callable(value) else repr(value))  # fmt: skip
def test_each_era_alone_is_that_of_scikit_learn_and_scipy(transformer, expected):
    found = transformer.set_params(smooth=0).fit_transform(WITH_NAN, eras=ERAS)
    assert_allclose(found, apart(expected, WITH_NAN), rtol=0, atol=1e-12)


def test_values_that_differ_by_rounding_are_scaled_as_by_scikit_learn():
    eras = np.repeat(np.arange(4), 9)
    almost = 2.0**40 + np.arange(36)[:, np.newaxis] % 2 * 2.0**-12
    found = EraStandardScaler(smooth=0).fit_transform(almost, eras=eras)
    expected = [StandardScaler().fit_transform(almost[era == eras]) for era in range(4)]
    assert_allclose(found, np.concatenate(expected), rtol=0, atol=1e-3)


def test_an_era_without_weight_is_unknown():
    weights = np.where(ERAS == "b", 0.0, WEIGHTS)
    for transformer in TRANSFORMERS[:4]:
        own = clone(transformer).set_params(unseen="train")
        own.fit(X, eras=ERAS, sample_weight=weights)
        assert own.era_labels_.tolist() == ["a", "c", "d"]
        found = own.transform(X, eras=ERAS)[ERAS == "b"]
        assert_array_equal(found, own.transform(X[ERAS == "b"]))
    model = EraTargetRegressor(LinearRegression(), TRANSFORMERS[-1])
    model.fit(X, X[:, 0], eras=ERAS, sample_weight=weights)
    assert model.transformer_.era_labels_.tolist() == ["a", "c", "d"]


def test_ranks_and_neutral_columns_are_those_of_numerai():
    for output, spread in {"uniform": np.asarray, "normal": gaussianize}.items():
        transformer = EraRankTransformer(output_distribution=output, smooth=0)
        found = transformer.fit_transform(X, eras=ERAS)
        expected = [spread(rank_normalize(x, eras=ERAS)) for x in X.T]
        assert_array_equal(found, np.transpose(expected))
    kept = ERAS != "a"  # more rows than neutralizers
    rows, eras = X[kept], ERAS[kept]
    for proportion in (0.4, 1.0):
        neutral = EraNeutralizer([0, 1], proportion=proportion, smooth=0)
        found = neutral.fit_transform(rows, eras=eras)
        known = {"proportion": proportion, "eras": eras}
        expected = [neutralize(x, rows[:, :2], **known) for x in rows.T[2:]]
        assert_allclose(found.T[2:], expected, rtol=0, atol=1e-12)
        assert_array_equal(found[:, :2], rows[:, :2])


def statistics(x, w):
    """n, the mean and the variance within an era."""
    x, w = x[~np.isnan(x)], w[~np.isnan(x)]
    mean = np.average(x, weights=w)
    return w.sum(), mean, np.average((x - mean) ** 2, weights=w)


@pytest.mark.parametrize("unseen", ["batch", "train"])
def test_statistics_are_mixed_with_those_of_the_training(unseen):
    scaler = EraStandardScaler(smooth=K, unseen=unseen)
    scaler.fit(WITH_NAN, eras=ERAS, sample_weight=WEIGHTS)
    new = np.array([[0.5, np.nan, 1, 2, 3], [1.5, np.nan, 1, 2, 9]])
    found = scaler.transform(new, eras=["new", "new"])
    again = scaler.transform(WITH_NAN, eras=ERAS)
    weights = np.ones(X.shape[0]) if unseen == "batch" else WEIGHTS
    for j, x in enumerate(WITH_NAN.T):
        of_eras = [statistics(x[era == ERAS], WEIGHTS[era == ERAS]) for era in "abcd"]
        n, *of_eras = np.transpose(of_eras)
        training = np.average(of_eras, axis=1, weights=n / (n + K))
        assert_allclose([scaler.center_[j], scaler.scale_[j] ** 2], training)
        parts = {era: (era == ERAS, x, weights, again) for era in "abcd"}
        parts["new"] = [True, True], new[:, j], np.ones(2) * (unseen == "batch"), found
        for rows, values, w, result in parts.values():
            values, result = values[rows], result[rows, j]
            n, own = 0.0, np.zeros(2)
            if (w[rows] * ~np.isnan(values)).any():
                n, *own = statistics(values, w[rows])
            center, square = (n * np.array(own) + K * training) / (n + K)
            assert_allclose(result, (values - center) / np.sqrt(square), atol=1e-12)


def test_ranks_are_mixed_with_those_of_the_training():
    transformer = EraRankTransformer(smooth=K).fit(X, eras=ERAS, sample_weight=WEIGHTS)
    w = WEIGHTS / (pd.Series(WEIGHTS).groupby(ERAS).transform("sum") + K).to_numpy()
    new = np.sort(X[:9], axis=0)[::4]  # three values of the training
    found = transformer.transform(new, eras=np.zeros(3))
    for x, values, column in zip(X.T, new.T, found.T, strict=True):
        below = (x[:, None] < values) + (x[:, None] == values) / 2
        own = ranks(values[:, None])[:, 0]
        expected = (3 * own + K * (w @ below / w.sum())) / (3 + K)
        # Values of rows without weight lie between those of others.
        is_known = np.isin(values, x[WEIGHTS > 0])
        assert_allclose(column[is_known], expected[is_known], rtol=0, atol=1e-12)
    ends = transformer.transform([[-1e9] * 5, [1e9] * 5], eras=[0, 1])
    assert 0 < ends[0].max() < ends[1].min() < 1


def test_few_ranks_of_many_values_are_remembered(monkeypatch):
    exact = EraRankTransformer(unseen="train").fit_transform(X, eras=ERAS)
    monkeypatch.setattr(_ranks, "_MOST_POINTS", 50)
    transformer = EraRankTransformer(unseen="train").fit(X, eras=ERAS)
    assert_allclose(transformer.transform(X, eras=ERAS), exact, rtol=0, atol=0.04)
    of_eras = [points for _, own in transformer._of_eras for points in own]
    for values, known in (*transformer._training, *of_eras):
        assert values.size == known.size <= 50


def test_coefficients_are_mixed_with_those_of_the_training():
    transformer = EraNeutralizer([0], smooth=K)
    found = transformer.fit_transform(WITH_NAN, eras=ERAS, sample_weight=WEIGHTS)
    for j in range(1, 5):
        x = WITH_NAN[:, j]

        def table(weights, x=x):
            for era in "abcd":
                rows = (era == ERAS) & ~np.isnan(x) & (weights > 0)
                fit = LinearRegression().fit(X[rows, :1], x[rows], weights[rows])
                yield max(0, weights[rows].sum() - 1), fit.coef_[0], fit.intercept_

        n, *of_eras = np.transpose([*table(WEIGHTS)])
        training = np.average(of_eras, axis=1, weights=n / (n + K))
        assert_allclose(transformer.coef_[:, j], training, rtol=0, atol=1e-9)
        for era, (n, *own) in zip("abcd", table(np.ones(ERAS.size)), strict=True):
            slope, level = (n * np.array(own) + K * training) / (n + K)
            rows = era == ERAS
            expected = x[rows] - slope * X[rows, 0] - level
            assert_allclose(found[rows, j], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "transformer", [*TRANSFORMERS, EraNeutralizer([0, 2], smooth=K)], ids=repr
)
def test_means_and_units_of_columns_are_free(transformer):
    table, known = WITH_NAN.copy(), {"eras": ERAS, "sample_weight": WEIGHTS}
    table[:, 2] = X[:, 2]
    units = np.array([1e-9, 1.0, 1e6, 1e9, 1e-3])
    expected = transformer.fit_transform(table, **known)
    found = transformer.fit_transform(units * (table + 1e5), **known)
    if isinstance(transformer, EraNeutralizer):
        others = np.delete(np.arange(5), transformer.neutralizers)
        expected, found = expected[:, others], (found / units)[:, others]
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_neutralizers_are_names_places_or_a_mask_of_the_fit():
    frame, mask = pd.DataFrame(X, columns=[*"vwxyz"]), [False, True, False, True, False]
    expected = EraNeutralizer([1, 3]).fit(X, eras=ERAS)
    for table, given in (
        (X, mask), (frame, mask), (frame, ["w", "y"]), (X, (3, 1)), (X, [1, 3, 1]),
    ):  # fmt: skip
        found = EraNeutralizer(given).fit(table, eras=ERAS)
        order = [1, 0, 2] if given == (3, 1) else [0, 1, 2]
        assert_allclose(found.coef_[order], expected.coef_, atol=1e-12)
    before = expected.transform(X, eras=ERAS)
    after = expected.set_params(neutralizers=[0]).transform(X, eras=ERAS)
    assert_array_equal(after, before)


@each
def test_rows_come_out_alone_as_with_others_by_the_statistics_of_training(transformer):
    transformer = clone(transformer)
    transformer.unseen = "train"
    transformed = transformer.fit_transform(WITH_NAN, eras=ERAS)
    assert_array_equal(np.isnan(transformed), np.isnan(WITH_NAN))
    for i in (0, 100):
        alone = transformer.transform(WITH_NAN[[i]], eras=ERAS[[i]])
        assert_allclose(alone, transformed[[i]], rtol=0, atol=1e-12)
    is_new = ERAS == "a"
    unseen = transformer.transform(WITH_NAN, eras=np.where(is_new, "z", ERAS))
    assert_array_equal(unseen[is_new], transformer.transform(WITH_NAN)[is_new])
    assert_array_equal(unseen[~is_new], transformed[~is_new])
    assert not np.allclose(unseen[is_new], transformed[is_new], equal_nan=True)


@each
@pytest.mark.parametrize("frames", [pd, pl])
def test_data_frames_go_in_and_come_out(transformer, frames):
    names = [*"vwxyz"]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    named = frames.DataFrame({"era": ERAS, **{n: frame[n] for n in names}})
    if isinstance(transformer, EraNeutralizer):
        transformer = clone(transformer).set_params(neutralizers=["v"])
    expected = transformer.fit_transform(frame, eras=ERAS)
    of_frame = clone(transformer).set_output(transform=frames.__name__)
    of_frame.fit(named, eras="era")
    of_frame = pickle.loads(pickle.dumps(of_frame))
    found = of_frame.transform(named)  # which knows the name of the column
    assert isinstance(found, frames.DataFrame)
    assert [*found.columns] == [*of_frame.get_feature_names_out()] == names
    assert_array_equal(found.to_numpy(), expected)


def test_columns_without_values_stay_so_and_constants_are_zero():
    table = X[:, :3] * [1, 0, np.nan] + [0, 0.1, 0]
    for transformer in TRANSFORMERS[:5]:
        fitted = clone(transformer).set_params(unseen="train").fit(table, eras=ERAS)
        found = fitted.transform(np.nan_to_num(table), eras=ERAS)
        assert np.isnan(found[:, 2]).all()
        middle = 0.5 if transformer == TRANSFORMERS[0] else 0.0
        assert_allclose(found[:, 1], middle, rtol=0, atol=1e-12)


@each
@pytest.mark.parametrize("unseen", ["batch", "train"])
def test_missing_values_stay_missing_beside_one_value(transformer, unseen):
    """Of an era, or of the training; be it the value of one row or of several."""
    table, transformer = WITH_NAN.copy(), clone(transformer)
    table[ERAS == "b", 1:3] += 1 - table[ERAS == "b", 1:3]
    table[np.flatnonzero(ERAS == "c")[1:], 3] = np.nan
    table[:, 4] *= 0
    transformer.unseen = unseen
    found = transformer.fit(table, eras=ERAS).transform(table, eras=ERAS)
    assert_array_equal(np.isnan(found), np.isnan(table))


@pytest.mark.parametrize("transformer", [
    *TRANSFORMERS[:5], EraTargetEncoder(smooth=K, target_type="continuous"),
], ids=repr)  # fmt: skip
def test_parameters_that_are_set_after_the_fit_count_in_the_next(transformer):
    y, (_, eras) = X[:, 3], np.unique(ERAS, return_inverse=True)
    fitted = clone(transformer).fit(X.round(), y, eras=eras)
    expected = [fitted.transform(X.round(), eras=at) for at in (eras, eras + 1)]
    names = fitted.get_feature_names_out().tolist()
    older = pickle.loads(pickle.dumps(fitted))  # by a version that did not keep them
    for name in ("_smooth", "_robust", "_variation", "_count"):
        vars(older).pop(name, None)
    assert_array_equal(older.transform(X.round(), eras=eras), expected[0])
    flags = {"robust", "variation", "count"} & {*transformer.get_params()}
    fitted.set_params(smooth=500.0, **{x: not getattr(fitted, x) for x in flags})
    for at, found in zip((eras, eras + 1), expected, strict=True):
        assert_array_equal(fitted.transform(X.round(), eras=at), found)
    assert fitted.get_feature_names_out().tolist() == names
    refitted = fitted.fit(X.round(), y, eras=eras).transform(X.round(), eras=eras)
    assert not np.array_equal(refitted, expected[0])


@pytest.mark.parametrize("transformer", TRANSFORMERS[:5], ids=repr)
def test_columns_without_values_in_training_have_the_statistics_of_later_eras(
    transformer,
):
    without = transformer.fit(X * [1, 1, 1, 1, np.nan], eras=ERAS)
    later = without.transform(WITH_NAN, eras=ERAS)
    alone = clone(transformer).set_params(smooth=0).fit(X, eras=ERAS)
    expected = alone.transform(WITH_NAN, eras=ERAS)
    assert_allclose(later[:, 4], expected[:, 4], rtol=1e-12, atol=1e-12)
    assert not np.array_equal(later[:, 3], expected[:, 3])  # mixed with the training


def test_predictions_come_back_to_the_level_of_their_era():
    weeks, x = np.repeat([1, 2, 3], 50), np.tile(np.linspace(-1, 1, 50), 3)
    y = weeks**2 * (10 + x)
    rows, new = x[:, None], [[0.5]]
    for level, factor in {"mean": (1 + 4 + 9) / 3, "last": 9}.items():
        transformer = EraTargetTransformer(smooth=0, level=level)
        model = EraTargetRegressor(LinearRegression(), transformer)
        model.fit(rows, y, eras=weeks)
        scale = 9 if level == "last" else np.sqrt((1 + 16 + 81) / 3)
        assert_allclose(model.predict(new), 10 * factor + 0.5 * scale)
        assert_allclose(model.predict(new, eras=[4]), model.predict(new))
        assert_allclose(model.predict(rows, eras=weeks), y)
    frame = pd.DataFrame({"week": weeks, "x": x})
    by_name = clone(model).fit(frame, y, eras="week")
    assert_allclose(by_name.predict(frame, eras="week"), y)
    assert by_name.feature_names_in_.tolist() == ["x"]
    model.set_params(regressor=make_pipeline("passthrough", LinearRegression()))
    found = model.fit(rows, y, eras=weeks).predict(rows, eras=weeks)
    assert_allclose(found, y)  # of a pipeline whose predictions take no eras
    forest = EraForestRegressor(3, random_state=0)
    found = model.set_params(regressor=forest).fit(rows, y, eras=weeks)
    errors = found.predict(rows, eras=weeks) - y
    assert np.abs(errors).max() < np.abs(found.predict(rows) - y).max()
    search = EraSearchCV(forest, {"max_depth": [2]}, cv=2).fit(rows, y, eras=weeks)
    assert_array_equal(search.predict(rows, eras=weeks), search.predict(rows))


@pytest.mark.parametrize("estimator", [
    EraTargetRegressor(LinearRegression()), EraStandardScaler(), EraTargetEncoder(),
    Booster(max_iter=3, era_effects="intercept"),
    EraConformalRegressor(Booster(max_iter=3, era_effects="intercept")),
], ids=lambda x: type(x).__name__)  # fmt: skip
def test_labels_in_another_order_of_rows_are_warned_of(estimator):
    frame, weeks = pd.DataFrame({"a": np.arange(60.0)}), pd.Series(np.arange(60) // 6)
    message = "^eras has the index of X in another order"
    with pytest.warns(UserWarning, match=message):
        estimator.fit(frame, frame.a, eras=weeks[::-1])
    respond = getattr(estimator, "transform", None) or estimator.predict
    with pytest.warns(UserWarning, match=message) as caught:
        respond(frame, eras=weeks[::-1])
    assert len(caught) == 1


def make_task(n_eras=12, n_rows=50):
    """Targets are the ranks of a column whose level changes with the era."""
    rng = np.random.default_rng(1)
    eras = np.repeat(np.arange(2000, 2000 + n_eras), n_rows)
    rows = rng.normal(size=(eras.size, 3))
    y = rank_normalize(rows[:, 0], eras=eras)
    return rows + 10 * rng.normal(size=(n_eras, 3))[eras - 2000], y, eras


COLUMNS = make_column_transformer(
    (EraRankTransformer(), [0, 1]), (EraStandardScaler(), [2]), remainder="drop"
)
FEW_TREES = Booster(max_iter=30)
PIPELINES = {
    "columns": make_pipeline(COLUMNS, Ridge(1e-6)),
    "union": make_pipeline(make_union("passthrough", EraRankTransformer()), FEW_TREES),
    "target": EraTargetRegressor(make_pipeline(COLUMNS, Ridge(1e-6))),
}
each_pipeline = pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
SCORINGS = pytest.param(None, marks=from_1_9), make_era_scorer(r2_score)


@pytest.mark.parametrize("scoring", SCORINGS)  # 1.7 routes nothing without any
def test_eras_are_routed_in_cross_validation(scoring):
    rows, y, eras = make_task()
    folds = GroupKFold(3)
    with config_context(enable_metadata_routing=True):
        found = cross_validate(PIPELINES["columns"], rows, y, cv=folds, scoring=scoring,
                               params={"eras": eras, "groups": eras})  # fmt: skip
        expected = []
        for train, test in folds.split(rows, groups=eras):
            model = clone(PIPELINES["columns"])
            model.fit(rows[train], y[train], eras=eras[train])
            expected.append(model.score(rows[test], y[test], eras=eras[test]))
    if scoring is None:
        assert_allclose(found["test_score"], expected)
    assert found["test_score"].min() > 0.9


@on_grid("pipeline routing", PIPELINES, [False, True], every=2)
def test_searches_hand_eras_to_transformers(pipeline, routing):
    rows, y, eras = make_task()
    with config_context(enable_metadata_routing=routing):
        for scoring in ("r2", make_era_scorer(r2_score), ["r2", "neg_max_error"]):
            search = EraSearchCV(pipeline, {}, scoring=scoring, refit="r2", rule="best")
            search.fit(rows, y, eras=eras)
            name = "r2" if isinstance(scoring, list) else "score"
            assert search.cv_results_[f"mean_test_{name}"] > 0.9
        assert search.score(rows, y, eras=eras) > 0.9
        assert r2_score(y, search.predict(rows, eras=eras)) > 0.9
        assert r2_score(y, search.predict(rows)) < 0.5  # of one era


@pytest.mark.parametrize("outer", [
    EraConformalRegressor, EraTargetRegressor, lambda model: EraSearchCV(model, {}),
])  # fmt: skip
def test_weights_reach_the_last_step_behind_transformers_by_era(outer):
    rows, y, eras = make_task()
    weights = np.random.default_rng(0).uniform(0.1, 9, y.size)
    pipeline, known = make_pipeline(EraStandardScaler(), FEW_TREES), {"eras": eras}
    scaled = pipeline[0].fit_transform(rows, **known)
    model = outer(pipeline).fit(rows, y, sample_weight=weights, **known)
    expected = outer(FEW_TREES).fit(scaled, y, sample_weight=weights, **known)
    found = model.predict(rows, **known)
    assert_array_equal(found, expected.predict(scaled, **known))
    unweighted = outer(FEW_TREES).fit(scaled, y, **known)
    assert not np.array_equal(found, unweighted.predict(scaled, **known))


@pytest.mark.parametrize("last", [
    EraSearchCV(Ridge(), {}), EraConformalRegressor(Ridge()),
    JustTrainTwice(LogisticRegression(), identification_estimator=DummyClassifier()),
])  # fmt: skip
def test_eras_to_predict_are_for_transformers_if_the_last_step_takes_none(last):
    rows, y, eras = make_task()
    known = {} if is_classifier(last) else {"eras": eras}
    y = y if known else y > np.median(y)
    pipeline = make_pipeline(EraStandardScaler(), last)
    scaled = pipeline[0].fit_transform(rows, eras=eras)
    expected = clone(last).fit(scaled, y, **known).predict(scaled)
    with config_context(enable_metadata_routing=True):
        pipeline.fit(rows, y, eras=eras)
        assert_array_equal(pipeline.predict(rows, eras=eras), expected)
    if known:
        search = EraSearchCV(pipeline, {}).fit(rows, y, eras=eras)
        assert_array_equal(search.predict(rows, eras=eras), expected)
    with pytest.raises(ValueError, match="takes none; leave eras out"):
        pipeline[-1].predict(scaled, eras=eras)


@pytest.mark.parametrize("outer", [EraConformalRegressor, lambda m: EraSearchCV(m, {})])
def test_weights_reach_models_within_each_other_and_no_earlier_step(outer):
    rows, y, eras = make_task()
    with config_context(enable_metadata_routing=True):
        known = LinearRegression().fit(rows[:, :2], y)
        frozen = FrozenEstimator(known.set_score_request(sample_weight=False))
    requests = str(frozen.estimator._metadata_request)
    steps = EraStandardScaler(), KMeans(2, random_state=0)
    weights, known = np.random.default_rng(0).uniform(0.1, 9, y.size), {"eras": eras}
    for last in (FEW_TREES, frozen):
        inner = EraTargetRegressor(make_pipeline(*steps, last))
        given = {} if last is frozen else {"sample_weight": weights}
        model = outer(inner).fit(rows, y, **given, **known)
        fitted = getattr(model, "best_estimator_", None) or model.estimator_
        scaled = steps[0].fit_transform(rows, **known)
        centers = clone(steps[1]).fit(scaled).cluster_centers_
        found = fitted.regressor_[1].cluster_centers_
        assert_allclose(found, centers)
    assert str(frozen.estimator._metadata_request) == requests


@each_pipeline
def test_averages_hand_eras_to_transformers(pipeline):
    rows, y, eras = make_task()
    model = AutoEraRegressor(Booster(max_iter=5), members=[("by era", pipeline)])
    model.fit(rows, y, eras=eras)
    assert model.weights_["by era"] > 0.9
    assert r2_score(y, model.predict(rows, eras=eras)) > 0.9
    assert r2_score(y, model.predict(rows)) < 0.5
    later, y_later, _ = make_task()
    model.update(later, y_later, eras=eras + 100)
    assert model.update_log_[-1]["loss"] < 0.02


BAD = [
    ("has 1 labels, but X has 220", lambda: EraRankTransformer().fit(X, eras=["a"])),
    ("^eras='week' names a column, but X is ndarray",
     lambda: EraStandardScaler().fit(X, eras="week")),
    ("The 'smooth' parameter", lambda: EraRankTransformer(smooth=-1).fit(X, eras=ERAS)),
    ("^neutralizers names column 'f', but X is no data frame, and its columns have no",
     lambda: EraNeutralizer(["f"]).fit(X, eras=ERAS)),
    ("^neutralizers: there is no column 5 among the 5 of X",
     lambda: EraNeutralizer([5]).fit(X, eras=ERAS)),
    ("^neutralizers has 2 bools, but X has 5 columns; pass one a column",
     lambda: EraNeutralizer([True, False]).fit(X, eras=ERAS)),
    ("^neutralizers must hold names, indices or bools; got True in it",
     lambda: EraNeutralizer([True, 2]).fit(X, eras=ERAS)),
    ("^unseen='train' needs .* fit, with unseen='batch', kept none: fit again",
     lambda: EraRankTransformer().fit(X, eras=ERAS).set_params(unseen="train")
     .transform(X, eras=ERAS)),
    (r"^neutralizers has columns of X with missing values \(NaN\): fill them",
     lambda: EraNeutralizer([0]).fit(X, eras=ERAS).transform(np.full((2, 5), np.nan))),
    (r"^neutralizers: no era has more rows with values than these 3 columns \(n_sam",
     lambda: EraNeutralizer([0, 1, 2]).fit(X[:3], eras=["a"] * 3)),
    ("^Labels are text such as 'a', and level='last' depends on its order: use level",
     lambda: EraTargetTransformer(level="last").fit(X, eras=ERAS)),
]  # fmt: skip


@pytest.mark.parametrize(("message", "call"), BAD)
def test_bad_input_is_named(message, call):
    with pytest.raises(ValueError, match=message):
        call()


def test_fits_without_eras_are_warned_of():
    with pytest.warns(UserWarning, match=r"^EraRankTransformer takes all rows for one"):
        found = EraRankTransformer(smooth=0).fit(X).transform(X)
    assert_array_equal(found, ranks(X))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 9, 30])  # of 9, three are quartiles
def test_robust_scales_are_those_of_scikit_learn_and_weights_repeat_rows(n):
    rng = np.random.default_rng(n)
    x = np.c_[rng.normal(size=n), rng.integers(3, size=n), rng.normal(size=n)]
    x[rng.integers(n), 2] = np.nan
    robust = EraStandardScaler(smooth=0, robust=True)
    found = robust.fit_transform(x, eras=[0] * n)
    known = slice(None, 2 if n == 1 else 3)
    expected = RobustScaler().fit_transform(x[:, known])
    assert_allclose(found[:, known], expected, rtol=1e-12, atol=1e-12)
    weights = rng.integers(1, 4, size=n)
    robust.set_params(unseen="train", smooth=2)
    heavy = robust.fit(x, eras=[0] * n, sample_weight=weights).transform(x)
    rows = np.repeat(x, weights, axis=0)
    assert_allclose(heavy, robust.fit(rows, eras=[0] * len(rows)).transform(x))
    robust.set_params(smooth=0)  # of a unit, weights are as none
    light = robust.fit(x, eras=[0] * n, sample_weight=np.full(n, 0.01)).transform(x)
    assert_allclose(light, found, rtol=1e-9, atol=1e-12)


TWELVE, TEXT = np.arange(12.0), np.array([*"uv" * 6], dtype=object)
DAYS = np.datetime64("2024-01-01") + np.arange(12)
NO_NUMBERS = {
    "objects": ("b", pd.DataFrame({"a": TWELVE, "b": pd.Series(TEXT, dtype=object)})),
    "strings": ("b", pd.DataFrame({"a": TWELVE, "b": pd.array(TEXT, dtype="string")})),
    "categories": ("b", pd.DataFrame({"a": TWELVE, "b": pd.Categorical(TEXT)})),
    "polars": ("b", pl.DataFrame({"a": TWELVE, "b": TEXT.tolist()})),
    "array": ("x1", np.column_stack([TWELVE.astype(object), TEXT])),
    "array of text": ("x1", np.column_stack([TWELVE.astype(str), TEXT.astype(str)])),
    "lists": ("x1", [[1.0, text] for text in TEXT]),
    "dates": ("x0", np.column_stack([DAYS, DAYS])),
    "objects of dates": ("x1", np.column_stack([TWELVE.astype(object), DAYS.tolist()])),
    "complex numbers": ("x0", np.column_stack([TWELVE, TWELVE]) * 1j),
}
HOURS = pl.from_pandas(pd.Series(pd.date_range("2024-01-01", periods=12, freq="h")))
TIMES = {"datetime": HOURS, "zone": HOURS.dt.replace_time_zone("UTC"),
         "date": HOURS.dt.date(), "duration": HOURS - HOURS[0],
         "time": HOURS.dt.time()}  # fmt: skip
for kind, times in TIMES.items():
    hours = pl.DataFrame({"when": times, "a": TWELVE, "text": TEXT.tolist()})
    arrow = hours.to_pandas(use_pyarrow_extension_array=True)
    NO_NUMBERS |= {
        f"{kind} beside numbers": ("when", hours[["when", "a"]]),
        f"{kind} beside text": ("when", hours[["when", "text"]]),
        f"{kind} of Arrow beside numbers": ("when", arrow[["when", "a"]]),
        f"{kind} of Arrow beside text": ("when", arrow[["when", "text"]]),
    }


@pytest.mark.parametrize(("name", "table"), NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize("transformer", [
    EraStandardScaler(), EraRankTransformer(), EraNeutralizer([0]),
    EraTargetTransformer()], ids=lambda x: type(x).__name__)  # fmt: skip
def test_a_column_without_numbers_is_refused_by_its_name(transformer, name, table):
    eras = np.arange(12) // 4
    message = rf"^X: column '{name}', of dtype .*, is not numeric: it holds "
    numbers = np.column_stack([TWELVE, TWELVE])
    names = getattr(table, "columns", None)
    good = numbers if names is None else pd.DataFrame(numbers, columns=names)
    fitted = clone(transformer).fit(good, eras=eras)
    for method in (clone(transformer).fit, fitted.transform):
        with pytest.raises(ValueError, match=message) as caught:
            method(table, eras=eras)
        assert str(caught.value).endswith(". Make numbers of it, or leave it out.")
        assert any(x in str(caught.value) for x in ("'u'", "date", "complex"))
    message = r"^X: column 'x0', .* it holds \{\}: float\(\) argument must be a string"
    with pytest.raises(TypeError, match=message):  # of scikit-learn's type
        clone(transformer).fit(np.array([[{}, 1]] * 12), eras=eras)


@pytest.mark.parametrize("regressor", [
    Booster(loss="poisson"), Booster(loss="gamma"), PoissonRegressor(),
    GammaRegressor(), TweedieRegressor(power=1.5),
], ids=lambda x: type(x).__name__)  # fmt: skip
def test_losses_of_amounts_name_the_transformer_that_shifts_them(regressor):
    rows, eras, y = np.ones((12, 1)), np.arange(12) // 4, np.arange(1.0, 13)
    message = (
        r"\by\b.*: the EraTargetTransformer shifts y, .* below 0\. Pass .* loss, or "
    )
    with pytest.raises(ValueError, match=message):
        EraTargetRegressor(regressor).fit(rows, y, eras=eras)
    for target, given in ((-y, eras), (y, eras[1:])):
        with pytest.raises(ValueError, match=r"^(?!.*shifts)"):
            EraTargetRegressor(regressor).fit(rows, target, eras=given)
    scaled = EraTargetTransformer(with_centering=False)
    model = EraTargetRegressor(regressor, scaled).fit(rows, y, eras=eras)
    assert (model.predict(rows) > 0).all()


def test_transformers_of_targets_take_eras():
    model = EraTargetRegressor(LinearRegression(), StandardScaler())
    message = "^transformer: the fit of StandardScaler takes no eras; pass one"
    with pytest.raises(ValueError, match=message):
        model.fit(np.ones((12, 1)), np.arange(12), eras=np.arange(12) // 4)


@pytest.mark.parametrize("estimator", [
    EraStandardScaler(), EraRankTransformer(), EraTargetRegressor(LinearRegression()),
    EraTargetEncoder(), EraSearchCV(LinearRegression(), {}), AutoEraRegressor(),
    EraConformalRegressor(LinearRegression()), Booster(), EraForestRegressor(),
])  # fmt: skip
def test_lazy_frames_are_refused(estimator):
    dask = pytest.importorskip("dask.dataframe")
    X, eras = pl.LazyFrame({"a": np.arange(12.0)}), np.arange(12) // 4
    frame = dask.from_pandas(pd.DataFrame({"a": eras, "b": 1.0}), npartitions=2)
    rows = np.ones((12, 1))
    for data, labels, message in (
        (X, eras, r"X is a lazy frame, .* pass X\.collect"),
        (X, "a", r"X is a lazy frame, .* pass X\.collect"),
        (rows, X, r"^eras is a lazy frame, .* eras\.collect\(\)"),
        (rows, frame[["a"]], r"^eras is a lazy frame, .* eras\.compute\(\)"),
        (frame, "a", r"^X is a lazy frame, .* X\.compute\(\)"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.fit(data, np.arange(12.0), eras=labels)


@pytest.mark.parametrize("transformer", [
    EraStandardScaler(), EraRankTransformer(), EraTargetEncoder(),
    EraNeutralizer(["x0"]), EraTargetTransformer(),
], ids=lambda x: type(x).__name__)  # fmt: skip
def test_what_is_no_table_is_refused(transformer):
    frame, eras = pd.DataFrame({"x0": np.arange(12.0), "x1": 1.0}), np.arange(12) // 4
    kinds = {"series": frame.x0, "dict": frame.to_dict("list")}
    kinds["list of dicts"] = frame.to_dict("records")
    for kind, X in kinds.items():
        for given in (eras, "x0"):
            message = f"^X is a {kind}, and a table is need"
            with pytest.raises(ValueError, match=message):
                transformer.fit(X, np.arange(12.0), eras=given)
