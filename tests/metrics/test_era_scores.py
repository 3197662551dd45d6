"""Scores by era, and what is made of them."""

import sys
import warnings
from dataclasses import dataclass
from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error, r2_score

from sklearn_era.metrics import (
    EraScores,
    era_scores,
    era_standard_errors,
    make_era_scorer,
)
from sklearn_era.metrics._metric import metric_name

numbers = st.integers(-100, 100).map(lambda i: i / 8)
rows = st.tuples(st.integers(0, 4), numbers, numbers, st.integers(1, 4))


def scores_of(values, eras=None, is_score=True):
    """The result of a metric that has these values in eras of one row."""
    values = np.asarray(values)
    eras = np.arange(values.size) if eras is None else eras
    counts = np.ones(values.size, int)
    return EraScores(eras, values, counts, directions={"the metric": is_score})


@given(st.lists(rows, min_size=1))
def test_era_scores_equal_the_naive_loop(rows):
    eras, y_true, y_pred, weight = map(np.array, zip(*rows, strict=True))
    of = {"eras": eras, "metric": mean_squared_error, "sample_weight": weight}
    result = era_scores(y_true, y_pred, **of)
    assert result.eras.tolist() == sorted(set(eras.tolist()))
    assert len(result) == len(result.eras)
    for (era, score), n_samples in zip(result.items(), result.n_samples, strict=True):
        own = eras == era
        errors = (y_true[own] - y_pred[own]) ** 2
        assert_allclose(score, weight[own] @ errors / weight[own].sum())
        assert n_samples == own.sum()


@given(st.lists(numbers, min_size=2, max_size=30))
def test_aggregations_equal_naive_loops(scores):
    n, mean = len(scores), sum(scores) / len(scores)
    std, sums = (sum((s - mean) ** 2 for s in scores) / n) ** 0.5, np.cumsum(scores)
    drawdown = max(max(sums[: j + 1]) - sums[j] for j in range(n))
    found = scores_of(scores)
    assert_allclose([found.mean(), np.mean(found), np.mean(found, axis=0)], mean)
    assert_allclose(found.aggregate("std"), std)
    assert_allclose(found.aggregate("max_drawdown"), drawdown)
    assert found.worst() == min(scores)
    assert scores_of(scores, is_score=False).worst() == max(scores)
    assert found.aggregate(np.median) == np.median(found) == np.median(scores)
    if len(set(scores)) > 1:
        assert_allclose(found.aggregate("sharpe"), mean / std)


def nameless(y_true, y_pred):
    return np.mean(np.subtract(y_true, y_pred))


@pytest.mark.parametrize(("metric", "given", "worst"), [
    (r2_score, None, min), (mean_absolute_error, None, max),
    (partial(mean_squared_error, sample_weight=None), None, max),
    (log_loss, True, min), (nameless, True, min), (nameless, False, max),
])  # fmt: skip
def test_the_worst_era_is_by_the_direction_of_the_metric(metric, given, worst):
    y, scored = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]
    of = {"eras": [0, 0, 1, 1], "metric": metric, "greater_is_better": given}
    found = era_scores(y, scored, **of)
    assert found.worst() == worst(found.values())


def test_a_direction_that_is_not_known_is_asked_for():
    found = era_scores([1, 2], [1, 3], eras=[0, 1], metric=nameless)
    assert (found.mean(), found.aggregate("std")) == (-0.5, 0.5)
    sharpe = partial(found.aggregate, "sharpe")
    for call in (found.worst, sharpe, partial(make_era_scorer, nameless)):
        with pytest.raises(ValueError, match=r"of nameless are better.* pass greater_"):
            call()


@pytest.mark.parametrize("name", ["sharpe", "max_drawdown"])
def test_what_errors_cannot_be_aggregated_by(name):
    make = partial(make_era_scorer, max, aggregation=name, greater_is_better=False)
    message = f"'{name}' is not meaningful with greater_is_better=False"
    for call in (make, partial(scores_of([1.0], is_score=False).aggregate, name)):
        with pytest.raises(ValueError, match=message):
            call()


def test_undefined_eras_are_named():
    scores = scores_of([0.5, np.nan, -0.5], np.array(["a", "b", "c"]))
    with pytest.raises(ValueError, match=r"^The metric is .* 1 of 3 eras \(b\)\. Drop"):
        scores.mean()
    with pytest.warns(UndefinedMetricWarning, match=r"\(b\), left out") as caught:
        assert scores.mean(undefined="omit") == 0.0
    assert caught[0].filename == __file__
    assert scores.worst(undefined=-2) == -2
    with pytest.raises(ValueError, match="leaves none"):
        scores_of([np.nan, np.inf]).mean(undefined="omit")
    with pytest.raises(ValueError, match=r"7 of 7 eras \(0, 1, 2, 3, 4, …\)"):
        scores_of([np.nan] * 7).mean()


def make_two_way():
    rng = np.random.default_rng(0)
    y, y_pred = rng.normal(size=(2, 400))
    shops = rng.choice(["north", "south", "east"], 400)
    weeks = rng.choice(np.array(["2024-01-05", "2024-01-12"], "M8[D]"), 400)
    # One combination has no rows.
    keep = (shops != "east") | (weeks != weeks.max())
    return [column[keep] for column in (y, y_pred, shops, weeks)]


@pytest.mark.parametrize("table", [dict, pd.DataFrame, pl.DataFrame])
def test_two_way_groups_equal_the_naive_loops(table):
    y, y_pred, shops, weeks = make_two_way()
    metrics = {"r2": r2_score, "mse": mean_squared_error}
    eras = table({"shop": shops, "week": weeks})
    found = era_scores(y, y_pred, eras=eras, metric=metrics)
    cells = sorted(set(zip(shops.tolist(), weeks, strict=True)))
    assert len(found) == len(cells) == 5
    assert [(shop, np.datetime64(week)) for shop, week in found] == cells
    by_shop = {shop: [] for shop in np.unique(shops)}
    for shop, week in cells:
        own = (shops == shop) & (weeks == week)
        score = {name: metric(y[own], y_pred[own]) for name, metric in metrics.items()}
        assert found[found.eras[cells.index((shop, week))]] == score
        by_shop[shop].append(score)
    every = pd.DataFrame([score for scores in by_shop.values() for score in scores])
    assert found.mean() == pytest.approx(every.mean().to_dict())
    assert found.worst() == {"r2": every.r2.min(), "mse": every.mse.max()}
    shop_means, spread = found.mean(by="shop"), found.aggregate("std", by="shop")
    for shop, scores in by_shop.items():
        scores = pd.DataFrame(scores)
        assert shop_means[shop] == pytest.approx(scores.mean().to_dict())
        assert spread[shop] == pytest.approx(scores.std(ddof=0).to_dict())
    assert shop_means.n_samples.sum() == y.size
    assert shop_means.worst()["mse"] == shop_means.scores["mse"].max()
    # A larger spread is worse, of scores too.
    assert spread.worst()["r2"] == spread.scores["r2"].max()


def test_two_way_groups_of_one_metric_and_a_matrix():
    y, y_pred, shops, weeks = make_two_way()
    codes = [np.unique(x, return_inverse=True)[1] for x in (shops, weeks)]
    found = era_scores(y, y_pred, eras=np.transpose(codes), metric=r2_score)
    own = np.sum(codes, axis=0) == 0
    assert found[0, 0] == found.scores[0] == r2_score(y[own], y_pred[own])
    assert (0, 1) not in found
    drawdowns = found.aggregate("max_drawdown", by=0)
    for shop, drawdown in drawdowns.items():
        _, *rest = [score for cell, score in found.items() if cell[0] == shop]
        assert drawdown == pytest.approx(max(0, -sum(rest)))
    for scores, name, by, message in (
        (found, "max_drawdown", None, r"2 columns: pass by=, one of \[0, 1\]"),
        (found, "mean", "shop", r"by='shop' must be .*\[0, 1\]"),
        (found.mean(by=0), "mean", "era", "by='era' .* leave at least one"),
    ):
        with pytest.raises(ValueError, match=message):
            scores.aggregate(name, by=by)


def test_means_by_two_of_three_columns():
    rng = np.random.default_rng(0)
    eras = pd.DataFrame({"horizon": rng.integers(1, 4, 400)})
    eras["week"] = rng.integers(0, 5, 400)
    eras["group"] = rng.choice(["new", "known"], 400)
    eras = eras[(eras.group == "new") | (eras.horizon < 3)]  # not all pairs occur
    y, y_pred = rng.normal(size=(2, len(eras)))
    found = era_scores(y, y_pred, eras=eras, metric=mean_squared_error)
    means = found.mean(by=["group", "horizon"])
    errors = eras.assign(error=(y - y_pred) ** 2).groupby([*eras])["error"].mean()
    expected = errors.groupby(["group", "horizon"]).mean()
    assert means.scores == pytest.approx(expected.to_numpy())
    assert [*means] == [*expected.index]
    assert means["known", 2] == pytest.approx(expected["known", 2])
    counts = eras.groupby(["group", "horizon"]).size()
    assert means.n_samples.tolist() == counts.tolist()
    table = means.to_frame()["mean_squared_error"].unstack()
    assert (table.shape, table.notna().sum().sum()) == ((2, 3), 5)
    assert dict(found.mean(by=["week"])) == dict(found.mean(by="week"))
    for by in ([], [*eras], ["group", "group"], ["shop"], ["shop", "week"]):
        with pytest.raises(ValueError, match="must be some of the col"):
            found.mean(by=by)


def test_tables_and_texts_of_results(monkeypatch):
    y, y_pred, shops, weeks = make_two_way()
    found = era_scores(y, y_pred, eras=weeks, metric=r2_score)
    assert repr(found) == (
        f"EraScores of 2 eras\n  r2_score: mean {found.mean():.4g}, from "
        f"{found.scores[0]:.4g} in 2024-01-05 to {found.scores[1]:.4g} in 2024-01-12"
    )
    assert found.scores[0] < found.scores[1]
    frame = found.to_frame()
    assert (frame.index.name, [*frame]) == ("era", ["r2_score", "n_samples"])
    assert frame["r2_score"].tolist() == found.scores.tolist()
    vars(found)["_places"] = {era: i for i, era in enumerate(found)}  # of old pickles
    for second in ("2024-01-12", pd.Timestamp("2024-01-12"), date(2024, 1, 12)):
        assert found[second] == found.scores[1]
    assert "2024-01-13" not in found
    with pytest.raises(KeyError, match="no era 'last'; the first are"):
        found["last"]
    eras = {"shop": shops, "week": weeks}
    found = era_scores(y, y_pred, eras=eras, metric=[r2_score, mean_squared_error])
    frame = found.to_frame()
    assert frame.index.names == ["shop", "week"]
    row = [*found[found.eras[0]].values(), found.n_samples[0]]
    assert frame.loc[("east", "2024-01-05")].tolist() == row
    assert repr(found).splitlines()[0] == "EraScores of 5 eras by shop, week"
    assert found["east", date(2024, 1, 5)] == found[found.eras[0]]
    shown = scores_of([np.nan, 1.0]), scores_of([np.nan])
    assert [repr(one).splitlines()[1] for one in shown] == [
        "  the metric: mean 1, from 1 in 1 to 1 in 1, undefined in 1",
        "  the metric: undefined",
    ]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is not installed, and this needs it"):
        found.to_frame()


def test_eras_of_one_class_or_no_weight_are_not_lost():
    of = {"metric": mean_squared_error, "sample_weight": [0, 1, 1]}
    result = era_scores([1, 2, 3], [1, 2, 4], eras=[0, 1, 1], **of)
    assert_array_equal(result.scores, [np.nan, 0.5])
    of = [0, 1, 1, 1], [0.1, 0.9, 0.3, 0.4]
    score = partial(era_scores, *of, eras=["a", "a", "b", "b"])
    with pytest.warns(UndefinedMetricWarning, match="Only one class"):
        result = score(metric=sk.roc_auc_score)
    assert_array_equal(result.scores, [1.0, np.nan])
    told = r"^roc_auc_score is undefined in 2 era\(s\) \(a, c\): Only one class"
    with pytest.warns(UndefinedMetricWarning, match=told) as caught:
        era_scores(
            [0, 0, 0, 1, 1], np.arange(5), eras=[*"abbbc"], metric=sk.roc_auc_score
        )
    assert [x.filename for x in caught] == [__file__]
    told = r"^r2_score is undefined in 1 era\(s\) \(0\): R.2"
    of = {"eras": [0, 1, 1], "metric": [r2_score, mean_squared_error]}
    with pytest.warns(UndefinedMetricWarning, match=told) as caught:
        era_scores([1, 2, 3], [1, 2, 4], **of)
    assert len(caught) == 1
    with pytest.raises(ValueError, match="metric log_loss failed in era b, of 2 rows"):
        score(metric=log_loss)
    assert np.isfinite(score(metric=log_loss, labels=[0, 1]).scores).all()


def n_rows(y_true, y_pred, sample_weight):
    return float(len(sample_weight))


@pytest.mark.parametrize("metric", [r2_score, sk.d2_absolute_error_score, n_rows])
def test_rows_of_weight_0_do_not_count(metric):
    y, p, eras = np.array([[1, 2, 3, 4, 6], [1, 3, 3, 4, 5], [0, 0, 1, 1, 1]])
    weight = np.array([1, 0, 2, 1, 0])  # a single row of the first era, two of the next
    kept = weight > 0
    of = {"metric": metric, "greater_is_better": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        found = era_scores(y, p, eras=eras, sample_weight=weight, **of)
        rest = era_scores(
            y[kept], p[kept], eras=eras[kept], sample_weight=weight[kept], **of
        )
    assert_array_equal(found.scores, rest.scores)


OF_POSITIVES = [sk.f1_score, sk.recall_score, sk.precision_score, sk.jaccard_score]
OF_POSITIVES += [sk.average_precision_score, partial(sk.fbeta_score, beta=2.0)]


@pytest.mark.parametrize("labels", [[0, 1], [False, True], [2, 1], ["no", "yes"]])
@pytest.mark.parametrize("metric", OF_POSITIVES, ids=metric_name)
def test_eras_without_positives_have_no_score_of_them(metric, labels):
    """Whether predicted ones are false or there are none; and rows without weight."""
    p, eras = np.array([0, 1, 1, 0, 0, 0, 1, 1]), np.repeat([*"abcd"], 2)
    y = np.array(labels)[[0, 1, 0, 0, 0, 0, 1, 0]]
    of = {"eras": eras, "sample_weight": [1, 1, 1, 1, 1, 1, 0, 1]}
    of |= {"pos_label": "yes"} if "yes" in labels else {}
    p = p if metric is sk.average_precision_score else np.array(labels)[p]
    told = rf"^{metric_name(metric)} is undefined in 3 era\(s\) \(b, c, d\): no row is"
    with pytest.warns(UndefinedMetricWarning, match=told) as caught:
        found = era_scores(y, p, metric=metric, **of)
    assert len(caught) == 1
    assert_array_equal(found.scores, [1, np.nan, np.nan, np.nan])
    if metric is not sk.average_precision_score:
        rest = {"metric": metric, "zero_division": 1.0} | of
        assert era_scores(y, p, **rest)["c"] == 1
        with pytest.raises(ValueError, match="pos_label=9 is not a valid label"):
            era_scores(y, p, metric=metric, **of | {"pos_label": 9})


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"], [3, 7, 9]])
def test_eras_of_one_class_have_no_correlation_of_matthews(labels):
    """And rows without weight are of no class."""
    y, p = np.array(labels)[[0, 1, 0, 0, 1, 1, 0, 1]], np.array(labels)[[0, 1] * 4]
    of = {"eras": np.repeat([*"abcd"], 2), "metric": sk.matthews_corrcoef}
    told = r"^matthews_corrcoef is undefined in 3 era\(s\) \(b, c, d\): rows of one cl"
    with pytest.warns(UndefinedMetricWarning, match=told):
        found = era_scores(y, p, sample_weight=[1, 1, 1, 1, 1, 1, 0, 1], **of)
    assert_array_equal(found.scores, [1, np.nan, np.nan, np.nan])
    constant = era_scores(y, y[[0] * 8], eras=np.ones(8), metric=sk.matthews_corrcoef)
    assert constant[1.0] == 0


@pytest.mark.parametrize("labels", [[0, 1], [1, 2], [-1, 0], [0, 2], [2.0, 1.0]])
def test_the_positive_class_of_losses_is_that_of_all_rows(labels):
    codes, eras = np.array([0, 1, 0, 0, 1, 1, 0]), np.array([*"aabbcca"])
    y, p = np.array(labels)[codes], np.array([0.1, 0.7, 0.2, 0.1, 0.9, 0.8, 0.3])
    is_positive = y == max(labels)
    metric = [sk.brier_score_loss, partial(sk.brier_score_loss, pos_label=labels[0])]
    of = {"eras": eras, "metric": dict(zip("ab", metric, strict=True))}
    found = era_scores(y, p, **of).scores
    for era, own in enumerate(np.unique(eras)):
        rows, other = eras == own, y == labels[0]
        assert_allclose(found["a"][era], np.mean((p - is_positive)[rows] ** 2))
        assert_allclose(found["b"][era], np.mean((p - other)[rows] ** 2))
    of = {"eras": eras, "metric": sk.brier_score_loss}
    expected = era_standard_errors(is_positive, p, **of).scores
    assert_array_equal(era_standard_errors(y, p, **of).scores, expected)
    told = r"2 era\(s\) \(b, c\): rows of one class"
    with pytest.warns(UndefinedMetricWarning, match=told):
        found = era_scores(y, p, eras=eras, metric=sk.hinge_loss).scores
    assert_array_equal(np.isnan(found), [False, True, True])


def test_scores_of_all_classes_are_those_of_scikit_learn():
    y, p, eras = [0, 0, 2, 1], [0, 0, 2, 2], [0, 0, 1, 1]
    found = era_scores(y, p, eras=eras, metric=sk.f1_score, average="micro")
    assert_array_equal(found.scores, [1, 0.5])
    with pytest.warns(UserWarning, match="A single label") as caught:
        found = era_scores(y, p, eras=[0, 1, 2, 2], metric=sk.balanced_accuracy_score)
    assert_array_equal(found.scores, [1, 1, 0.5])
    assert [x.filename for x in caught] == [__file__]


@pytest.mark.parametrize(("changed", "message"), [
    ({"y_pred": [1.0]}, "y_pred has 1 rows, but y_true has 3"),
    ({"sample_weight": [1.0]}, "sample_weight has 1 rows, but y_true has 3"),
    ({"eras": [0, 1]}, "eras has 2 labels, but y_true has 3"),
    ({"eras": [0, 1, None]}, "eras has 1 missing label"),
    ({"eras": {}}, "eras has no column of labels"),
    ({"eras": {"a": [0, 0, 1], "b": [0, None, 1]}}, r"eras\['b'\] has 1 missing"),
    ({"eras": None}, "'eras' parameter"), ({"metric": "r2"}, "'metric' parameter"),
    ({"metric": ["r2"]}, "metric is 'r2': pass a function"),
    ({"metric": []}, "must hold at least one function"),
    ({"metric": 2 * [r2_score]}, "functions of one name in a dict"),
    ({"metric": sk.get_scorer("r2")}, "metric is make_scorer.*, and no scorer"),
    ({"metric": lambda y_true, y_pred: None}, "must return one number"),
    ({"metric": lambda y_true, y_pred: y_pred}, "must return one number"),
    ({"metric": lambda y_true, y_pred: 1j}, "must return one number"),
    ({"metric": lambda y_true, y_pred, eras: 1.0}, "needs a parameter eras"),
    ({"y_true": [], "y_pred": [], "eras": []}, "y_true has no rows"),
])  # fmt: skip
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
    for shown, values in (*constants, (".*", noise), (".*", 1e6 + 1e6 * noise)):
        scores = scores_of(values)
        assert scores.aggregate("std") == 0
        message = f"0 up to rounding: the score is {shown} in each of {len(scores)} era"
        with pytest.raises(ValueError, match=message):
            scores.aggregate("sharpe")
        assert scores.aggregate("sharpe", undefined=0.0) == 0
        assert scores.worst() == min(values)
    assert scores_of([0.1]).aggregate("max_drawdown") == 0
    spread = scores_of([0, 1e-13])  # which is small, and no rounding
    assert_allclose(spread.aggregate("sharpe"), 1)
    # Errors have the unit of the target, which may be small.
    for unit in (1e-20, 1.0, 1e20):
        errors = scores_of(unit * np.array([1, 3]), is_score=False)
        assert_allclose(errors.aggregate("std"), unit)
        equal = scores_of(unit * np.array(3 * [0.1]), is_score=False)
        assert equal.aggregate("std") == 0


def test_drawdown_of_numbered_texts_warns_of_their_order():
    labels = np.array(sorted(f"era{code}" for code in range(1, 13)))
    values = np.arange(12.0)
    with pytest.warns(UserWarning, match="'era12' comes before 'era2'") as caught:
        scores_of(values, labels).aggregate("max_drawdown")
    assert [str(w.message).startswith("aggregation='max_dr") for w in caught] == [True]
    assert caught[0].filename == __file__
    # Nothing to warn of: the order does not matter, or is that of the numbers.
    assert scores_of(values, labels).worst() == 0
    assert scores_of(values).aggregate("max_drawdown") == 0


def test_result_of_a_callable_aggregation_is_checked():
    scores = scores_of([1.0, 2.0])
    for result, message in (
        (np.ones(2), r"must return one number; .*lambda.* returned \[1\. 1\.\]"),
        (None, "must return one number; .*returned None"),
        (1j, "must return one number; .*returned 1j"),
        (np.nan, r"must return a finite number; .*returned nan of 2 era\(s\)"),
    ):
        with pytest.raises(ValueError, match=f"^aggregation {message}"):
            scores.aggregate(lambda _, result=result: result)
    assert scores.aggregate(lambda _: np.nan, undefined=0.5) == 0.5


@dataclass
class Quantile:
    """A function that cannot be hashed."""

    share: float

    def __call__(self, values):
        return np.quantile(values, self.share)


def test_an_aggregation_may_be_any_function():
    y, y_pred, shops, weeks = make_two_way()
    eras = {"shop": shops, "week": weeks}
    found = era_scores(y, y_pred, eras=eras, metric=mean_squared_error)
    largest = found.aggregate(Quantile(1.0), by="shop")
    for shop, value in largest.items():
        assert value == max(x for cell, x in found.items() if cell[0] == shop)
    assert largest.directions == found.directions
    scorer = make_era_scorer(mean_squared_error, aggregation=Quantile(1.0))
    assert scorer._sign == -1


def test_undefined_is_no_bool():
    for call in (scores_of([1.0]).mean, partial(make_era_scorer, max)):
        with pytest.raises(ValueError, match=r"undefined must be .* number; got F"):
            call(undefined=False)


def test_ordered_categories_keep_their_order():
    y, sizes = np.arange(12.0), ["small", "medium", "large"]
    of_rows = pd.Categorical(np.tile(sizes, 4), categories=sizes, ordered=True)
    of = {"metric": mean_absolute_error}
    assert list(era_scores(y, 2 * y, eras=of_rows, **of)) == sizes
    table = {"half": np.repeat([0, 1], 6), "size": of_rows}
    found = era_scores(y, 2 * y, eras=table, **of)
    assert list(found) == [(half, size) for half in (0, 1) for size in sizes]
    assert dict(found.mean(by="size")) == {"small": 4.5, "medium": 5.5, "large": 6.5}
