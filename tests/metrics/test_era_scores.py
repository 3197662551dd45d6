"""Scores by era, and what is made of them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    get_scorer,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    roc_auc_score,
)

from helpers.metrics import make_data
from sklearn_era.metrics import (
    EraScores,
    aggregate_era_scores,
    era_score,
    era_scores,
    make_era_scorer,
)

numbers = st.integers(-100, 100).map(lambda i: i / 8)
rows = st.tuples(st.integers(0, 4), numbers, numbers, st.integers(1, 4))


@given(st.lists(rows, min_size=1))
def test_era_scores_equal_the_naive_loop(rows):
    eras, y_true, y_pred, weight = map(np.array, zip(*rows, strict=True))
    result = era_scores(
        y_true, y_pred, eras=eras, metric=mean_squared_error, sample_weight=weight
    )
    assert result.eras.tolist() == sorted(set(eras.tolist()))
    for era, score, n_samples in zip(*result, strict=True):
        own = [i for i, other in enumerate(eras) if other == era]
        errors = sum(weight[i] * (y_true[i] - y_pred[i]) ** 2 for i in own)
        assert_allclose(score, errors / sum(weight[i] for i in own))
        assert n_samples == len(own)


@given(st.lists(numbers, min_size=2, max_size=30))
def test_aggregations_equal_naive_loops(scores):
    n = len(scores)
    mean = sum(scores) / n
    std = (sum((s - mean) ** 2 for s in scores) / n) ** 0.5
    best = running = scores[0]
    drawdown = 0.0
    for score in scores[1:]:
        running += score
        best = max(best, running)
        drawdown = max(drawdown, best - running)
    assert_allclose(aggregate_era_scores(scores), mean)
    assert_allclose(aggregate_era_scores(scores, "std"), std)
    assert_allclose(aggregate_era_scores(scores, "max_drawdown"), drawdown)
    assert aggregate_era_scores(scores, "worst") == min(scores)
    errors = {"greater_is_better": False}
    assert aggregate_era_scores(scores, "worst", **errors) == max(scores)
    assert aggregate_era_scores(scores, np.median) == np.median(scores)
    if len(set(scores)) > 1:
        assert_allclose(aggregate_era_scores(scores, "sharpe"), mean / std)


@pytest.mark.parametrize("aggregation", ["sharpe", "max_drawdown"])
def test_what_errors_cannot_be_aggregated_by(aggregation):
    message = f"'{aggregation}' is not meaningful with greater_is_better=False"
    errors = {"aggregation": aggregation, "greater_is_better": False}
    for function, of in ((aggregate_era_scores, [1.0, 2.0]), (make_era_scorer, max)):
        with pytest.raises(ValueError, match=message):
            function(of, **errors)


def test_undefined_eras_are_named():
    eras = np.array(["a", "b", "c"])
    scores = EraScores(eras, np.array([0.5, np.nan, -0.5]), np.array([2, 2, 2]))
    with pytest.raises(ValueError, match=r"in 1 of 3 eras \(eras b\)\. Drop"):
        aggregate_era_scores(scores)
    with pytest.raises(ValueError, match=r"in 1 of 3 eras \(positions 1\)"):
        aggregate_era_scores(scores.scores)
    with pytest.warns(UndefinedMetricWarning, match=r"\(eras b\), left out"):
        assert aggregate_era_scores(scores, undefined="omit") == 0.0
    assert aggregate_era_scores(scores, "worst", undefined=-2) == -2
    with pytest.raises(ValueError, match="leaves none"):
        aggregate_era_scores([np.nan, np.inf], undefined="omit")
    with pytest.raises(ValueError, match=r"7 of 7 eras \(positions 0, 1, 2, 3, 4, …\)"):
        aggregate_era_scores([np.nan] * 7)


def test_eras_of_one_class_or_no_weight_are_not_lost():
    of = {"metric": mean_squared_error, "sample_weight": [0, 1, 1]}
    result = era_scores([1, 2, 3], [1, 2, 4], eras=[0, 1, 1], **of)
    assert_array_equal(result.scores, [np.nan, 0.5])
    y, eras = [0, 1, 1, 1], ["a", "a", "b", "b"]
    scored = [0.1, 0.9, 0.3, 0.4]
    with pytest.warns(UndefinedMetricWarning, match="Only one class"):
        result = era_scores(y, scored, eras=eras, metric=roc_auc_score)
    assert_array_equal(result.scores, [1.0, np.nan])
    with (
        pytest.warns(UndefinedMetricWarning, match="Only one class"),
        pytest.raises(ValueError, match=r"\(eras b\)"),
    ):
        era_score(y, scored, eras=eras, metric=roc_auc_score)
    with pytest.raises(ValueError, match="metric log_loss failed in era b, of 2 rows"):
        era_scores(y, scored, eras=eras, metric=log_loss)
    labelled = era_scores(y, scored, eras=eras, metric=log_loss, labels=[0, 1])
    assert np.isfinite(labelled.scores).all()


@pytest.mark.parametrize("container", [list, np.asarray, pd.Series])
def test_containers_and_label_types(container):
    _, y, eras = make_data(60)
    codes = np.array([int(era[1:]) for era in eras])
    expected = [mean_absolute_error(y[codes == j], 0 * y[codes == j]) for j in range(6)]
    weeks = np.datetime64("2024-01-05") + np.timedelta64(7, "D") * codes
    for labels in (eras, codes, weeks, codes / 2):
        of = {"eras": container(labels), "metric": mean_absolute_error}
        result = era_scores(container(y), container(0 * y), **of)
        assert_array_equal(result.scores, expected)
        assert_array_equal(result.eras, np.unique(labels))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_pred": [1.0]}, "y_pred has 1 rows, but y_true has 3"),
        ({"sample_weight": [1.0]}, "sample_weight has 1 rows, but y_true has 3"),
        ({"eras": [0, 1]}, "eras has 2 labels, but y_true has 3"),
        ({"eras": [0, 1, None]}, "eras has 1 missing label"),
        ({"eras": None}, "'eras' parameter"),
        ({"metric": "r2"}, "'metric' parameter"),
        ({"metric": get_scorer("r2")}, "metric is the scorer"),
        ({"metric": lambda y_true, y_pred: None}, "must return one number"),
        ({"metric": lambda y_true, y_pred: y_pred}, "must return one number"),
        ({"metric": lambda y_true, y_pred: 1j}, "must return one number"),
        ({"metric": lambda y_true, y_pred, eras=None: 1.0}, "has a parameter eras"),
        ({"y_true": [], "y_pred": [], "eras": []}, "y_true has no rows"),
    ],
)
def test_arguments_of_era_scores_are_checked(changed, message):
    arguments = {"y_true": [1.0, 2.0, 3.0], "y_pred": [1.0, 2.0, 3.0]}
    arguments |= {"eras": [0, 0, 1], "metric": mean_absolute_error}
    with pytest.raises(ValueError, match=message):
        era_scores(**arguments | changed)


def test_a_spread_of_rounding_is_none():
    """R² of a constant, 1 - a/a, is 0 in one era and off by a digit in the next."""
    noise = np.array([0, 2.2e-16, -2.2e-16, 0])
    # np.std of three times 0.1 is not 0.
    constants = [("0.1", [0.1]), ("0.1", 3 * [0.1])]
    for shown, scores in (*constants, (".*", noise), (".*", 1e6 + 1e6 * noise)):
        assert aggregate_era_scores(scores, "std") == 0
        message = f"0 up to rounding: the score is {shown} in each of {len(scores)} era"
        with pytest.raises(ValueError, match=message):
            aggregate_era_scores(scores, "sharpe")
        assert aggregate_era_scores(scores, "sharpe", undefined=0.0) == 0
        assert aggregate_era_scores(scores, "worst") == min(scores)
    assert aggregate_era_scores([0.1], "max_drawdown") == 0
    spread = np.array([0, 1e-13])  # which is small, and no rounding
    assert_allclose(aggregate_era_scores(spread, "sharpe"), 1)


def test_drawdown_of_numbered_texts_warns_of_their_order():
    y = np.arange(24.0)
    labels = np.array([f"era{code}" for code in range(1, 13)])
    of = {"metric": mean_absolute_error, "aggregation": "max_drawdown"}
    with pytest.warns(UserWarning, match="'era12' comes before 'era2'") as caught:
        by_text = era_score(y, y**2, eras=np.repeat(labels, 2), **of)
    assert [str(w.message).startswith("aggregation='max_dr") for w in caught] == [True]
    scores = era_scores(y, y**2, eras=np.repeat(labels, 2), metric=mean_absolute_error)
    with pytest.warns(UserWarning, match="in the order of their labels") as caught:
        assert aggregate_era_scores(scores, "max_drawdown") == by_text
    assert caught[0].filename == __file__
    # Nothing to warn of: the order does not matter, or is that of the numbers.
    assert aggregate_era_scores(scores, "worst") == 0
    era_score(y, y**2, eras=np.repeat(np.arange(1, 13), 2), **of)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.array([1.0, 2.0]), r"must return one number; .*lambda.* returned array\("),
        (None, "must return one number; .*returned None"),
        (1j, "must return one number; .*returned 1j"),
        (np.nan, r"must return a finite number; .*returned nan of 2 era\(s\)"),
    ],
)
def test_result_of_a_callable_aggregation_is_checked(result, message):
    with pytest.raises(ValueError, match=f"^aggregation {message}"):
        aggregate_era_scores([1.0, 2.0], lambda scores: result)
    if isinstance(result, float):
        of = {"undefined": 0.5}
        assert aggregate_era_scores([1.0, 2.0], lambda scores: result, **of) == 0.5


def test_scores_to_aggregate_are_checked_and_undefined_is_no_bool():
    for scores in ([], [[1.0]], 3.0, ["a"], [1j]):
        with pytest.raises(ValueError, match="scores"):
            aggregate_era_scores(scores)
    message = "undefined must be 'raise', 'omit' or a number; got "
    for function, of in ((aggregate_era_scores, [1.0]), (make_era_scorer, max)):
        for undefined in (True, False):
            with pytest.raises(ValueError, match=message + str(undefined)):
                function(of, undefined=undefined)
