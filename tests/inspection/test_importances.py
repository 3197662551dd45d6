"""Importances of features by era: sums of gains, in the order of the columns of X."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers.inspection import (
    make_data,
    make_frame,
    make_model,
    make_targets,
)
from sklearn_era.inspection import era_feature_importances, split_statistics


@pytest.mark.parametrize("kind", ["regressor", "binary", "multiclass"])
def test_importances_are_sums_of_gains_by_column(kind):
    frame, y, eras = make_frame()
    y = make_targets(kind, y)
    model = make_model(kind).fit(frame, y)
    statistics = split_statistics(model, frame, y, eras=eras)
    result = era_feature_importances(model, frame, y, eras=eras)
    assert result.importances.shape == (4, 6)
    assert result.feature_names.tolist() == list("pqrstu")
    assert_array_equal(result.era_labels, np.arange(4))
    for column in range(6):
        by_column = statistics.feature == column
        assert_allclose(
            result.importances[:, column], statistics.era_gains[by_column].sum(axis=0)
        )
        assert_allclose(result.pooled[column], statistics.gain[by_column].sum())
    if kind == "regressor":
        assert result.pooled[4] == result.pooled.max()


def test_normalized_importances_of_an_era_sum_to_one():
    frame, y, eras = make_frame()
    model = make_model("regressor").fit(frame, y)
    raw = era_feature_importances(model, frame, y, eras=eras)
    result = era_feature_importances(model, frame, y, eras=eras, normalize=True)
    assert_allclose(result.importances.sum(axis=1), 1)
    assert_allclose(result.pooled.sum(), 1)
    assert_allclose(
        result.importances, raw.importances / raw.importances.sum(axis=1)[:, None]
    )


def test_importances_as_pandas():
    frame, y, eras = make_frame()
    model = make_model("regressor").fit(frame, y)
    eras = np.array(["w1", "w2", "w3", "w4"])[eras]
    expected = era_feature_importances(model, frame, y, eras=eras)
    result = era_feature_importances(model, frame, y, eras=eras, as_frame=True)
    assert result.importances.index.tolist() == ["w1", "w2", "w3", "w4"]
    assert result.importances.columns.tolist() == list("pqrstu")
    assert_array_equal(result.importances, expected.importances)
    assert_array_equal(result.pooled, expected.pooled)
    assert result.pooled.index.tolist() == list("pqrstu")


def test_importances_see_which_feature_differs_between_eras():
    """The second feature has no effect in the eras where its slope is near 0."""
    X, y, eras = make_data()
    X = np.nan_to_num(X)
    model = make_model("regressor", max_iter=30).fit(X, y)
    y = np.where(eras == 0, X[:, 1], X[:, 0]) * 3
    shares = era_feature_importances(model, X, y, eras=eras, normalize=True).importances
    assert shares[0, 1] > 2 * shares[1:, 1].max()
    assert shares[0, 0] < shares[1:, 0].min()
