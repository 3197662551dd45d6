"""Live predictions: by name, checked, ranked; each failure in a sentence."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata
from sklearn.linear_model import LinearRegression

from helpers.numerai.live import NAMES, expected_ranks, fit, make_blend, make_frame
from sklearn_era.numerai.config import PredictSection
from sklearn_era.numerai.errors import DataError, SubmissionError
from sklearn_era.numerai.store import Blend, ModelRecord, WeightedFit, predict_live

RECORD = ModelRecord(
    features=NAMES, target="target_ender_60", version="v5.3", parameters={}, sha256=""
)


@pytest.fixture(scope="module")
def model():
    return Blend([WeightedFit(fit(), NAMES)])


@pytest.fixture
def predict(model, tmp_path):
    """Predict a live file with a change, by a blend and its records."""

    def predict(
        change=lambda live: live, *, blend=model, records=None, share=0.0, by=(),
        version="v5.3",
    ):  # fmt: skip
        path = tmp_path / "live_3.parquet"
        change(make_frame(60)).to_parquet(path)
        own = records or [RECORD] * len(blend.fits)
        of = {"version": version, "neutralizers": by, "proportion": share}
        return predict_live(blend, own, path, **of)

    return predict


@pytest.mark.parametrize("kind", ["single", "several"])
def test_predictions_are_ranks_in_the_order_of_the_file(predict, model, kind):
    blend = model if kind == "single" else make_blend()
    predictions = predict(blend=blend)
    assert (predictions.index.name, predictions.name) == ("id", "prediction")
    expected = expected_ranks(blend, make_frame(60))["prediction"]
    assert predictions.to_dict() == expected.to_dict()
    assert predictions.index.tolist() == expected.index.tolist()
    # Wherever columns and ids are.
    for change in (lambda x: x[x.columns[::-1]], lambda x: x.reset_index()):
        pd.testing.assert_series_equal(predict(change, blend=blend), predictions)


def test_features_of_others_may_be_missing_or_odd(predict):
    blend = Blend([WeightedFit(fit(NAMES[:4]), NAMES[:4])])
    whole = predict(blend=blend)

    def spoil(live):
        return live.drop(columns=NAMES[4]).assign(feature_unknown=np.nan, feature_h=9)

    pd.testing.assert_series_equal(predict(spoil, blend=blend), whole)
    with pytest.raises(DataError, match=rf"lacks 1 of 8 col.* \(first: {NAMES[4]}\)"):
        predict(spoil, blend=blend, share=0.5, by=NAMES)


def test_another_version_is_warned_of_once(predict):
    with pytest.warns(UserWarning, match=r"on v5\.3, but the live data are v6") as told:
        predict(version="v6.0", blend=make_blend())
    assert len(told) == 1


def test_missing_values_are_refused_unless_training_had_some(predict):
    first, second = NAMES[:2]

    def lose(live):
        live = live.astype({first: "float32", second: "float32"})
        live.iloc[:7, live.columns.get_loc(first)] = np.nan
        live.iloc[3:5, live.columns.get_loc(second)] = np.nan
        return live

    def record(*with_missing):
        return RECORD.model_copy(update={"features_with_missing": list(with_missing)})

    with pytest.raises(DataError, match=rf"9 values .* 2 features .*{first} has nan\)"):
        predict(lose)
    with pytest.raises(DataError, match=f"2 values .* 1 features .{second}; "):
        predict(lose, records=[record(first)])
    assert predict(lose, records=[record(first, second)]).notna().all()
    # Every fit of a blend that reads a feature has to know its gaps.
    parts = [WeightedFit(fit(), NAMES), WeightedFit(fit(NAMES[:1]), NAMES[:1])]
    knows = record().model_copy(update={"features": NAMES[:1]})
    with pytest.raises(DataError, match=f"7 values .* 1 features .{first}; "):
        predict(lose, blend=Blend(parts), records=[record(first, second), knows])


@pytest.mark.parametrize("value", [-1, 5])
def test_values_outside_the_bins_are_counted_and_named(predict, value):
    name, some = NAMES[2], np.arange(60) // 3 == 4
    message = rf"3 values .* 1 features \({name}; {name} has {value}\): outside of 0 "
    with pytest.raises(DataError, match=message):
        predict(lambda live: live.assign(**{name: live[name].mask(some, value)}))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("unit", "factor", "value"), [
    (1, 0.25, "0.25"), (0.25, 1, "2"), (0.2, 1, "1"), (2.5, 1, "1"),
])  # fmt: skip
def test_another_scale_than_in_training_is_refused(predict, unit, factor, value, dtype):
    def scaled(factor):
        return lambda x: x.assign(**(x[NAMES] * factor).astype(dtype))

    known = (np.arange(5) * unit).astype(dtype).tolist()
    records = [RECORD.model_copy(update={"values": known})]
    with pytest.raises(DataError, match=rf"has the value {value}, but .* same scale"):
        predict(scaled(factor), records=records)
    # Values beyond those of Numerai's features are right where training had them.
    assert predict(scaled(unit), records=records).notna().all()


def test_constant_features_are_not_blamed_on_the_fit(predict):
    with pytest.raises(DataError, match=r"All 8 features .* are constant"):
        predict(lambda x: x.assign(**dict.fromkeys(NAMES, np.int8(2))))


@pytest.mark.parametrize("values", [np.full(60, 0.5), np.repeat([np.nan, 1], [4, 56])])
def test_predictions_of_no_use_are_refused(predict, model, values):
    odd = WeightedFit(SimpleNamespace(predict=lambda X: values), NAMES)
    with pytest.raises(SubmissionError, match="for target_ender_60 learned nothing"):
        predict(blend=Blend([*model.fits, odd]))


def test_neutralization_leaves_no_linear_exposure_but_by_ranking(predict):
    few = NAMES[:4]
    X = make_frame(60)[few].to_numpy()
    made = predict(), predict(share=1.0, by=few)
    before, after = (LinearRegression().fit(X, one).score(X, one) for one in made)
    assert after < 0.1 * before
    # Without a feature set it is by the model's own.
    own = PredictSection(neutralize_proportion=0.5).neutralizers(NAMES, {}.__getitem__)
    assert own == NAMES
    assert not predict(share=0.5, by=own).equals(predict())


def test_another_file_than_a_live_file_is_refused(predict):
    with pytest.raises(DataError, match="has 2 eras, but a live file has one"):
        predict(lambda live: live.assign(era=["X", "Y"] * 30))
    # Nor one whose features linear regression does not take.
    holed = {"feature_holes": lambda x: x["feature_a"].where(x["feature_a"] > 0)}
    with pytest.raises(DataError, match=r"feature set: .* NaN .* 'feature_holes'"):
        predict(lambda x: x.assign(**holed), share=0.5, by=[*holed])


THREE = ["feature_a", "feature_b", "feature_c"]
BLOCK = np.random.default_rng(0).integers(0, 5, (40, 3), dtype=np.int8)
ROWS = pd.DataFrame(BLOCK, columns=THREE)


def taking(*weights):
    """An estimator that sums its columns by weight."""
    return SimpleNamespace(predict=lambda X: X @ np.array(weights))


def rank(x):
    return (rankdata(x) - 0.5) / len(x)


def test_fits_are_averaged_by_weight_each_on_its_own_columns():
    first = WeightedFit(taking(1.0, 5.0), ["feature_c", "feature_a"], weight=2.0)
    blend = Blend([first, WeightedFit(taking(3.0), ["feature_b"], weight=0.5)])
    assert blend.features == ["feature_c", "feature_a", "feature_b"]
    assert blend.shares == [0.8, 0.2]
    a, b, c = BLOCK.T.astype(float)
    total = 0.8 * norm.ppf(rank(c + 5 * a)) + 0.2 * norm.ppf(rank(3 * b))
    expected = rank(total.round(9))
    assert blend.ranks(ROWS) == pytest.approx(expected, abs=1e-15)
    alone = Blend(blend.fits[1:]).ranks(ROWS)
    assert alone.tolist() == rank(3 * b).tolist()
    # Where the columns lie does not matter, nor do others.
    turned = ROWS[THREE[::-1]].assign(other=0)
    assert np.array_equal(blend.ranks(turned), blend.ranks(ROWS))
