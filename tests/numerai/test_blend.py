"""Blends of fits: each on its own columns, ranked, weighted, and ranked again."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm, rankdata
from sklearn.linear_model import LinearRegression

from sklearn_era.numerai import blend as blends
from sklearn_era.numerai.blend import Blend, Part, load_blend

NAMES = ["feature_a", "feature_b", "feature_c"]
BLOCK = np.random.default_rng(0).integers(0, 5, (40, 3), dtype=np.int8)


def taking(*weights):
    """An estimator that sums its columns by weight."""
    return SimpleNamespace(predict=lambda X: X @ np.array(weights))


def rank(x):
    return (rankdata(x) - 0.5) / len(x)


def test_a_single_fit_is_ranked():
    part = Part(taking(1.0, 2.0, 10.0), NAMES)
    expected = rank(BLOCK @ [1.0, 2.0, 10.0])
    assert Blend([part]).ranks(BLOCK, NAMES).tolist() == expected.tolist()


def test_fits_are_averaged_by_weight_each_on_its_own_columns():
    blend = Blend(
        [
            Part(taking(1.0, 5.0), ["feature_c", "feature_a"], weight=2.0),
            Part(taking(3.0), ["feature_b"], weight=0.5),
        ]
    )
    assert blend.features == ["feature_c", "feature_a", "feature_b"]
    assert blend.shares == [0.8, 0.2]
    a, b, c = BLOCK.T.astype(float)
    total = 0.8 * norm.ppf(rank(c + 5 * a)) + 0.2 * norm.ppf(rank(3 * b))
    expected = rank(total.round(9))
    assert blend.ranks(BLOCK, NAMES) == pytest.approx(expected, abs=1e-15)
    # Where the columns lie does not matter, nor do others.
    turned = np.column_stack([BLOCK[:, 2], BLOCK[:, 0] * 0, BLOCK[:, 1], BLOCK[:, 0]])
    names = ["feature_c", "other", "feature_b", "feature_a"]
    assert np.array_equal(blend.ranks(turned, names), blend.ranks(BLOCK, NAMES))


def test_sums_that_differ_by_rounding_are_ties():
    x = np.arange(7.0)
    parts = [Part(None, NAMES, weight) for weight in (0.1, 0.3, 0.1, 0.3)]
    opposed = [x, x, -x, -x]
    assert Blend(parts).combine(opposed).tolist() == [0.5] * 7


def test_an_estimator_with_names_gets_its_columns_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(BLOCK, columns=NAMES)[["feature_c", "feature_b"]]
    model = LinearRegression().fit(frame, np.arange(40.0))
    part = Part(model, ["feature_c", "feature_b"])
    assert part.predict(BLOCK, NAMES) == pytest.approx(model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        Part(model, ["feature_b", "feature_c"]).predict(BLOCK, NAMES)


def test_a_model_is_read_with_the_records_of_its_fits(monkeypatch, tmp_path):
    records = [SimpleNamespace(features=[f"feature_{x}"]) for x in ("one", "two")]
    fits = {"one": ("first", records[0]), "two": ("second", records[1])}
    monkeypatch.setattr(blends, "load_fit", lambda folder, name: fits[name])
    members = [
        SimpleNamespace(name="one", weight=1), SimpleNamespace(name="two", weight=3)
    ]  # fmt: skip
    blend, read = load_blend(tmp_path, SimpleNamespace(members=members))
    assert read == records
    assert [part.estimator for part in blend.parts] == ["first", "second"]
    assert blend.features == ["feature_one", "feature_two"]
    assert blend.shares == [0.25, 0.75]
