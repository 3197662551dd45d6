"""Live predictions: by name, checked, ranked; each failure in a sentence."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.linear_model import LinearRegression

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from helpers.numerai.demo import Constant, SmallDemo, small_demo  # noqa: E402
from sklearn_era.ensemble import HistGradientBoostingRegressor  # noqa: E402
from sklearn_era.numerai.errors import (  # noqa: E402
    ConfigError,
    DataError,
    SubmissionError,
)
from sklearn_era.numerai.submission.prediction import predict_live  # noqa: E402


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> SmallDemo:
    return small_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def changed_live(demo, tmp_path):
    """Write the live file with a change."""

    def write(change):
        frame = change(demo.frame("live"))
        path = tmp_path / "live_2.parquet"
        frame.to_parquet(path)
        return path

    return write


def test_predictions_are_ranks_of_the_models_in_the_order_of_the_file(demo):
    predictions = predict_live(demo.estimator, demo.record, demo.path("live"))
    live = demo.frame("live")
    raw = demo.estimator.predict(live[demo.features].to_numpy())
    expected = (rankdata(raw) - 0.5) / len(raw)
    assert predictions.to_numpy() == pytest.approx(expected, abs=1e-15)
    assert predictions.index.tolist() == live.index.tolist()
    assert predictions.index.name == "id"
    assert predictions.name == "prediction"
    assert predictions.between(0, 1, inclusive="neither").all()


def test_columns_are_found_by_name_wherever_they_are(demo, changed_live):
    expected = predict_live(demo.estimator, demo.record, demo.path("live"))
    turned = changed_live(lambda live: live[live.columns[::-1]])
    again = predict_live(demo.estimator, demo.record, turned)
    pd.testing.assert_series_equal(again, expected)


def test_id_may_be_a_column(demo, changed_live):
    expected = predict_live(demo.estimator, demo.record, demo.path("live"))
    path = changed_live(lambda live: live.reset_index())
    again = predict_live(demo.estimator, demo.record, path)
    pd.testing.assert_series_equal(again, expected, check_index_type=False)


def test_model_of_a_frame_gets_its_columns_by_name(demo):
    train = demo.frame("train")
    named = HistGradientBoostingRegressor(max_iter=5, early_stopping=False)
    named.fit(train[demo.features], train[demo.data.target])
    predictions = predict_live(named, demo.record, demo.path("live"))
    raw = named.predict(demo.frame("live")[demo.features])
    assert np.array_equal(predictions, (rankdata(raw) - 0.5) / len(raw))


def test_features_that_are_not_there_are_counted_and_named(demo, changed_live):
    path = changed_live(lambda live: live.drop(columns=demo.features[3:5]))
    message = (
        rf"lack 2 of 20 model features \(first: {demo.features[3]}\)\. Model was "
        r"trained on v5\.3, feature set 'all', file is v5\.2"
    )
    with pytest.raises(DataError, match=message):
        predict_live(demo.estimator, demo.record, path, version="v5.2")


def test_another_version_with_the_same_features_warns(demo):
    with pytest.warns(UserWarning, match=r"trained on v5\.3, and the live data are v6"):
        predict_live(demo.estimator, demo.record, demo.path("live"), version="v6.0")


def test_missing_values_are_refused_unless_training_had_some(demo, changed_live):
    first, second = demo.features[:2]

    def lose(live):
        live = live.astype({first: "float32", second: "float32"})
        live.iloc[:7, live.columns.get_loc(first)] = np.nan
        live.iloc[3:5, live.columns.get_loc(second)] = np.nan
        return live

    path = changed_live(lose)
    with pytest.raises(
        DataError, match=r"9 missing values in 2 features .*none in tra"
    ):
        predict_live(demo.estimator, demo.record, path)
    record = replace(demo.record, features_with_missing=[first])
    with pytest.raises(DataError, match=f"2 missing values in 1 features .{second}"):
        predict_live(demo.estimator, record, path)
    record = replace(demo.record, features_with_missing=[first, second])
    assert predict_live(demo.estimator, record, path).notna().all()


@pytest.mark.parametrize("value", [-1, 5])
def test_values_outside_the_bins_are_counted_and_named(demo, changed_live, value):
    name = demo.features[2]

    def spoil(live):
        live.iloc[10:13, live.columns.get_loc(name)] = value
        return live

    message = rf"3 values outside 0 to 4 in 1 features \({name}; {name} has {value}\)"
    with pytest.raises(DataError, match=message):
        predict_live(demo.estimator, demo.record, changed_live(spoil))


def test_equal_predictions_are_refused(demo):
    with pytest.raises(SubmissionError, match=r"All predictions are equal \(0\.5\)"):
        predict_live(Constant(), demo.record, demo.path("live"))


def test_predictions_that_are_not_finite_are_refused(demo):
    class Broken:
        def predict(self, X):
            return np.where(np.arange(len(X)) < 4, np.nan, 1.0)

    with pytest.raises(SubmissionError, match="4 of 60 predictions are NaN"):
        predict_live(Broken(), demo.record, demo.path("live"))


def test_predictions_of_another_shape_are_refused(demo):
    class Wide:
        def predict(self, X):
            return np.zeros((len(X), 2))

    with pytest.raises(SubmissionError, match=r"shape \(60, 2\) for 60 rows"):
        predict_live(Wide(), demo.record, demo.path("live"))


def test_full_neutralization_leaves_no_linear_exposure_but_by_ranking(demo):
    few = demo.features[:4]
    plain = predict_live(demo.estimator, demo.record, demo.path("live"))
    neutral = predict_live(
        demo.estimator,
        demo.record,
        demo.path("live"),
        neutralize_proportion=1.0,
        neutralize_features=few,
    )
    X = demo.frame("live")[few].to_numpy()
    explained = [
        LinearRegression().fit(X, one).score(X, one) for one in (plain, neutral)
    ]
    assert explained[1] < 0.1 * explained[0]
    assert neutral.between(0, 1, inclusive="neither").all()
    assert sorted(neutral) == pytest.approx((np.arange(60) + 0.5) / 60)


def test_proportion_without_features_neutralizes_by_the_models(demo):
    by_default, named = (
        predict_live(
            demo.estimator,
            demo.record,
            demo.path("live"),
            neutralize_proportion=0.5,
            neutralize_features=features,
        )
        for features in (None, demo.features)
    )
    pd.testing.assert_series_equal(by_default, named)
    plain = predict_live(demo.estimator, demo.record, demo.path("live"))
    assert not by_default.equals(plain)


def test_neutralizers_that_are_not_there_are_named(demo):
    with pytest.raises(DataError, match=r"lack 1 of 2 .* by \(first: feature_none\)"):
        predict_live(
            demo.estimator,
            demo.record,
            demo.path("live"),
            neutralize_proportion=0.5,
            neutralize_features=[demo.features[0], "feature_none"],
        )


def test_neutralizers_with_missing_values_are_named(demo, changed_live):
    def add(live):
        return live.assign(feature_holes=np.where(np.arange(60) < 5, np.nan, 1.0))

    with pytest.raises(DataError, match=r"5 missing values .* by \(feature_holes\)"):
        predict_live(
            demo.estimator,
            demo.record,
            changed_live(add),
            neutralize_proportion=0.5,
            neutralize_features=["feature_holes"],
        )


@pytest.mark.parametrize("proportion", [-0.1, 1.1])
def test_proportion_out_of_range_is_refused(demo, proportion):
    with pytest.raises(ConfigError, match=f"neutralize_proportion = {proportion}"):
        predict_live(
            demo.estimator,
            demo.record,
            demo.path("live"),
            neutralize_proportion=proportion,
        )


def test_file_of_several_eras_is_not_a_live_file(demo):
    with pytest.raises(DataError, match="24 eras, and live data have one"):
        predict_live(demo.estimator, demo.record, demo.path("validation"))


def test_damaged_file_is_refused(demo, tmp_path):
    path = tmp_path / "live_3.parquet"
    path.write_bytes(demo.path("live").read_bytes()[:-100])
    with pytest.raises(DataError, match="cut off"):
        predict_live(demo.estimator, demo.record, path)
