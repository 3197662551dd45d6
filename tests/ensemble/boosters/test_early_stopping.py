"""Eras follow the rows into early stopping, its scorers and warm starts.

Rows are held out at random here; test_held_out_eras.py holds out whole eras. The first
feature of the data is the number of a row's era. Bins of so few values are the values,
so a scorer, which is shown binned rows, knows which eras it should get.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.metrics import make_scorer
from sklearn.model_selection import train_test_split

from helpers.criteria import COVER_ALL
from helpers.trees import n_splits
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor

ESTIMATORS = [Classifier, Regressor]
LABELS = np.array(["w01", "w02", "w03", "w04", "w05", "w06"])


def make_data(n_samples=500, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_samples) % LABELS.size)
    X = np.column_stack([codes, rng.normal(size=(n_samples, 3))])
    score = X[:, 1] * np.array([3, -1, 2, -2, 1, 1])[codes] + X[:, 2]
    return X, np.digitize(score + rng.normal(size=n_samples), [-1, 0, 1]), LABELS[codes]


class RecordingScorer:
    """Check that eras belong to the rows, and keep what was seen."""

    def __init__(self):
        self.calls = []

    def __call__(self, est, X, y, eras):
        assert X.shape[0] == y.shape[0] == eras.shape[0]
        assert X.dtype == np.uint8
        assert_array_equal(LABELS[X[:, 0]], eras)
        self.calls.append((X, y, eras))
        return float(len(self.calls))  # always better: all iterations are made


def make_estimator(estimator=Regressor, **parameters):
    defaults = {"max_iter": 4, "min_samples_leaf": 3, "random_state": 0,
                "early_stopping": True, "split_criterion": "directional",
                "validation_eras": None}  # fmt: skip
    return estimator(**defaults | parameters)


@pytest.mark.parametrize("criterion", ["gain", "directional"])
@pytest.mark.parametrize("n_samples", [500, 12_000], ids=["whole", "subsampled"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scorer_gets_eras_of_both_sets(estimator, n_samples, criterion):
    X, y, eras = make_data(n_samples)
    scorer = RecordingScorer()
    model = make_estimator(estimator, scoring=scorer, split_criterion=criterion)
    model.fit(X, y, eras=eras)
    assert (model.n_iter_, len(scorer.calls)) == (4, 2 * (4 + 1))
    n_train = n_samples - n_samples // 10
    assert [len(e) for _, _, e in scorer.calls[1::2]] == [n_samples // 10] * 5
    assert len({len(e) for _, _, e in scorer.calls[::2]}) == 1
    if n_train <= 10_000:
        assert len(scorer.calls[0][2]) == n_train
        seen = np.concatenate([scorer.calls[0][2], scorer.calls[1][2]])
        assert_array_equal(np.sort(seen), np.sort(eras))
    else:  # whole eras, until there are enough rows
        seen, counts = np.unique(scorer.calls[0][2], return_counts=True)
        assert sum(counts) >= 10_000
        assert sum(counts) - min(counts) < 10_000
        held_out = scorer.calls[1][2]
        for era, count in zip(seen, counts, strict=True):
            assert count == (eras == era).sum() - (held_out == era).sum()
    assert "_fit_state" not in vars(model)
    assert model._scorer is scorer


@pytest.mark.parametrize("validation_eras", [None, "last"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scorer_gets_eras_val_or_those_of_all_rows(estimator, validation_eras):
    X, y, eras = make_data()
    X_val, y_val, eras_val = make_data(80, seed=1)
    scorer = RecordingScorer()
    model = make_estimator(estimator, scoring=scorer, validation_eras=validation_eras)
    model.fit(X, y, eras=eras, X_val=X_val, y_val=y_val, eras_val=eras_val)
    for i, (_, seen_y, seen_eras) in enumerate(scorer.calls):
        assert_array_equal(seen_y, y_val if i % 2 else y)
        assert_array_equal(seen_eras, eras_val if i % 2 else eras)
    scorer.calls.clear()
    model.set_params(validation_fraction=None).fit(X, y, eras=eras)
    assert len(scorer.calls) == 4 + 1
    assert all(np.array_equal(seen, eras) for *_, seen in scorer.calls)


def test_scorer_gets_eras_beside_sample_weight_or_none_as_upstream_calls_it():
    X, y, eras = make_data()
    calls = []

    def scoring(est, X, y, sample_weight, eras):
        assert_array_equal(LABELS[X[:, 0]], eras)
        assert_array_equal(sample_weight, 1 + X[:, 0])
        calls.append(len(eras))
        return 0.0

    make_estimator(scoring=scoring, max_bins=32).fit(X, y, 1 + X[:, 0], eras=eras)
    scoring = lambda est, X, y: calls.append(len(y)) or 0.0  # noqa: E731
    make_estimator(scoring=scoring).fit(X, y, eras=eras)
    assert calls == [450, 50] * 10


@pytest.mark.parametrize("requested", [True, False])
def test_scorer_that_requests_eras_gets_them(requested):
    X, y, eras = make_data()
    seen = []

    def metric(y_true, y_pred, eras=None):
        seen.append(eras)
        return float(len(seen))

    with config_context(enable_metadata_routing=True):
        scoring = make_scorer(metric).set_score_request(eras=requested)
        make_estimator(scoring=scoring).fit(X, y, eras=eras)
    assert len(seen) == 10
    if requested:
        both = np.concatenate(seen[:2])
        assert [len(e) for e in seen] == [450, 50] * 5
        assert_array_equal(np.sort(both), np.sort(eras))
    else:
        assert all(e is None for e in seen)


def test_missing_eras_are_named():
    X, y, eras = make_data()
    model = make_estimator(scoring=RecordingScorer(), split_criterion="gain")
    validation = {"eras": eras, "X_val": X, "y_val": y}
    for name, arguments in (("eras", {}), ("eras_val", validation)):
        message = f"scoring asks for eras, but {name} was not provided"
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, **arguments)
        assert "_fit_state" not in vars(model)


def fit_with_era_of_two_rows(seed, **parameters):
    """Fit with the era "w00" of two rows; returns how many are left for training."""
    X, y, eras = make_data(120)
    eras = np.where(np.arange(120) < 2, "w00", eras)
    parameters = COVER_ALL | {"random_state": seed} | parameters
    model = make_estimator(validation_fraction=0.4, **parameters)
    drawn = np.random.RandomState(seed).randint(2**32 - 1, dtype="u8")
    eras_train, _ = train_test_split(eras, test_size=0.4, random_state=drawn)
    return model, (X, y, eras), (eras_train == "w00").sum()


def test_early_stopping_that_leaves_too_few_rows_of_an_era_is_refused():
    refused = set()
    for seed in range(20):
        model, (X, y, eras), n_left = fit_with_era_of_two_rows(seed)
        if n_left == 2:
            model.fit(X, y, eras=eras)
            continue
        refused.add(n_left)
        message = "held out validation_fraction=0.4 of the rows at random, which leaves"
        message += f" {n_left} of the 2 rows of era w00 .*min_samples_per_era=1"
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, eras=eras)
        model.set_params(split_criterion="gain").fit(X, y, eras=eras)
    assert refused == {0, 1}


@pytest.mark.filterwarnings("ignore:No split was admissible:UserWarning")
def test_early_stopping_may_leave_too_few_rows_of_an_era_that_need_no_cover():
    for seed in range(10):
        model, (X, y, eras), _ = fit_with_era_of_two_rows(seed, min_era_coverage=0.5)
        model.fit(X, y, eras=eras)
        assert n_splits(model) > 2


@pytest.mark.parametrize("validation_eras", [None, "random"])
def test_early_stopping_does_not_hide_an_era_that_is_too_small(validation_eras):
    """Whether its row is held out, and the era gone from training, is chance."""
    X, y, eras = make_data(120)
    eras = ["w09", *eras[1:]]
    for seed in range(10):
        model = make_estimator(validation_fraction=0.5, random_state=seed,
                               validation_eras=validation_eras,
                               **COVER_ALL)  # fmt: skip
        with pytest.raises(ValueError, match=r"the smallest, era w09, has 1\."):
            model.fit(X, y, eras=eras)


def test_a_score_that_is_not_defined_of_a_constant_stops_nothing():
    """scikit-learn compares with it after `n_iter_no_change` iterations, and stops."""
    X, _, eras = make_data()
    scorer = make_scorer(lambda y, p: np.corrcoef(y, p)[0, 1] if np.ptp(p) else np.nan)
    model = Regressor(scoring=scorer, early_stopping=True, max_iter=15, tol=0.0)
    model.set_params(n_iter_no_change=5, validation_fraction=0.3, random_state=0)
    model.fit(X[:, 1:], X[:, 1], eras=np.unique(eras, return_inverse=True)[1])
    assert np.isnan(model.validation_score_[0])
    assert model.n_iter_ == 15


@pytest.mark.parametrize(("scores", "stops"), [([1.0] * 9, True), ([1.0, 2.0], False)])
def test_scores_are_compared_out_of_a_fit(scores, stops):
    """Tests of scikit-learn 1.7 and 1.8 ask estimators that are not fitted."""
    assert Regressor(n_iter_no_change=5)._should_stop(scores) == stops


@pytest.mark.filterwarnings("ignore:Only one class is present")
@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "roc_auc"])
def test_probabilities_of_held_out_rows_of_one_class_are_scored(scoring):
    """But for an area, which is not defined, and refused."""
    X, y, eras = make_data()
    y = np.where((y > 1) & (eras < "w06"), "yes", "no")
    model = Classifier(scoring=scoring, early_stopping=True, validation_fraction=1,
                       max_iter=15, era_order="ordered")  # fmt: skip
    if scoring == "roc_auc":
        with pytest.raises(ValueError, match=r"scoring='roc_auc' is NaN in all 11"):
            model.fit(X, y, eras=eras)
        return
    p = model.fit(X, y, eras=eras).predict_proba(X[eras == "w06"])[:, 0]
    score = np.log(p) if scoring == "neg_log_loss" else -((1 - p) ** 2)
    assert np.isclose(model.validation_score_[-1], score.mean())


@pytest.mark.parametrize(("known", "other"), [
    ("ab", ["a", "bz"]), ([0, 1], [0, 1.5]), (np.array([0, 1], np.int8), [0, 257]),
    ([0, 1], ["0", "1"]), ([False, True], [0, 2]), (list("ab"), ["a", "c"]),
])  # fmt: skip
def test_y_val_of_other_classes_is_refused(known, other):
    """Cast to the type of the classes, text and digits are cut off."""
    X, y, _ = make_data(100)
    known, other = np.array(list(known)), np.array(other)
    model = Classifier(max_iter=2, early_stopping=True)
    with pytest.raises(ValueError, match=r"y_val has \d class.*not in the fit"):
        model.fit(X, known[y % 2], X_val=X, y_val=other[y % 2])
    model.fit(X, known[y % 2], X_val=X, y_val=known[y % 2].astype(object))
    assert len(model.validation_score_) == 3
