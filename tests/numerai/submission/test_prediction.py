"""Live predictions: by name, checked, ranked; each failure in a sentence."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.linear_model import LinearRegression

from sklearn_era.numerai.errors import ConfigError, DataError, SubmissionError
from sklearn_era.numerai.submission.prediction import predict_live


@pytest.fixture
def predict(demo, changed):
    """Predict the live file with a change, by a model and a record."""

    def predict(change=None, *, model=demo.estimator, record=demo.record, **options):
        path = changed(change, "live") if change else demo.path("live")
        return predict_live(model, record, path, **options)

    return predict


def test_predictions_are_ranks_of_the_models_in_the_order_of_the_file(demo, predict):
    predictions = predict()
    live = demo.frame("live")
    raw = demo.estimator.predict(live[demo.features].to_numpy())
    expected = (rankdata(raw) - 0.5) / len(raw)
    assert predictions.to_numpy() == pytest.approx(expected, abs=1e-15)
    assert predictions.index.tolist() == live.index.tolist()
    assert (predictions.index.name, predictions.name) == ("id", "prediction")


def test_columns_and_ids_are_found_wherever_they_are(predict):
    turned = predict(lambda live: live[live.columns[::-1]])
    pd.testing.assert_series_equal(turned, predict())
    column = predict(lambda live: live.reset_index())
    pd.testing.assert_series_equal(column, predict(), check_index_type=False)


def test_model_of_a_frame_gets_its_columns_by_name(demo, named, predict):
    raw = named.predict(demo.frame("live")[demo.features])
    assert np.array_equal(predict(model=named), (rankdata(raw) - 0.5) / len(raw))


def test_other_features_are_named_and_another_version_warned_of(demo, predict):
    message = (
        rf"lack 2 of 20 model features \(first: {demo.features[3]}\)\. Model was "
        r"trained on v5\.3, feature set 'all', file is v5\.2"
    )
    with pytest.raises(DataError, match=message):
        predict(lambda live: live.drop(columns=demo.features[3:5]), version="v5.2")
    # With the same features there is a warning.
    with pytest.warns(UserWarning, match=r"trained on v5\.3, and the live data are v6"):
        predict(version="v6.0")


def test_missing_values_are_refused_unless_training_had_some(demo, predict):
    first, second = demo.features[:2]

    def lose(live):
        live = live.astype({first: "float32", second: "float32"})
        live.iloc[:7, live.columns.get_loc(first)] = np.nan
        live.iloc[3:5, live.columns.get_loc(second)] = np.nan
        return live

    with pytest.raises(DataError, match=r"9 missing values in 2 features .*none in tr"):
        predict(lose)
    record = replace(demo.record, features_with_missing=[first])
    with pytest.raises(DataError, match=f"2 missing values in 1 features .{second}"):
        predict(lose, record=record)
    record = replace(demo.record, features_with_missing=[first, second])
    assert predict(lose, record=record).notna().all()


@pytest.mark.parametrize("value", [-1, 5])
def test_values_outside_the_bins_are_counted_and_named(demo, predict, value):
    name, some = demo.features[2], np.arange(60) // 3 == 4

    def spoil(live):
        return live.assign(**{name: live[name].mask(some, value)})

    message = rf"3 values outside 0 to 4 in 1 features \({name}; {name} has {value}\)"
    with pytest.raises(DataError, match=message):
        predict(spoil)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full(60, 0.5), r"All predictions are equal \(0\.5\)"),
        (np.repeat([np.nan, 1.0], [4, 56]), "4 of 60 predictions are NaN"),
        (np.zeros((60, 2)), r"shape \(60, 2\) for 60 rows"),
    ],
)
def test_predictions_of_no_use_are_refused(predict, values, message):
    model = SimpleNamespace(predict=lambda X: values)
    with pytest.raises(SubmissionError, match=message):
        predict(model=model)


def test_neutralization_leaves_no_linear_exposure_but_by_ranking(demo, predict):
    few = demo.features[:4]
    neutral = predict(neutralize_proportion=1.0, neutralize_features=few)
    X = demo.frame("live")[few].to_numpy()
    before, after = (
        LinearRegression().fit(X, one).score(X, one) for one in (predict(), neutral)
    )
    assert after < 0.1 * before
    assert sorted(neutral) == pytest.approx((np.arange(60) + 0.5) / 60)

    # Without features it is by the model's.
    half = predict(neutralize_proportion=0.5)
    named = predict(neutralize_proportion=0.5, neutralize_features=demo.features)
    pd.testing.assert_series_equal(half, named)
    assert not half.equals(predict())


def test_neutralizers_that_cannot_be_used_are_named(demo, predict):
    def holes(live):
        return live.assign(feature_holes=np.where(np.arange(60) < 5, np.nan, 1.0))

    for change, names, message in (
        (None, ["feature_none"], r"lack 1 of 1 .* by \(first: feature_none\)"),
        (holes, ["feature_holes"], r"5 missing values .* by \(feature_holes\)"),
    ):
        with pytest.raises(DataError, match=message):
            predict(change, neutralize_proportion=0.5, neutralize_features=names)
    for proportion in (-0.1, 1.1):
        with pytest.raises(ConfigError, match=f"neutralize_proportion = {proportion}"):
            predict(neutralize_proportion=proportion)


def test_another_file_than_a_whole_live_file_is_refused(demo, tmp_path):
    path = tmp_path / "live_3.parquet"
    path.write_bytes(demo.path("live").read_bytes()[:-100])
    for file, message in (
        (demo.path("validation"), "24 eras, and live data have one"),
        (path, "cut off"),
    ):
        with pytest.raises(DataError, match=message):
            predict_live(demo.estimator, demo.record, file)
