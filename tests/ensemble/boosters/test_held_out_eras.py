"""Early stopping holds out whole eras: which ones, and what becomes of them."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from helpers import estimators
from helpers.criteria import BLEND, NAMES
from helpers.data import N_SAMPLES, make_data
from helpers.estimators import stock
from helpers.grids import grid, on_grid
from helpers.trees import assert_same_model

N_ERAS = 10


def ours(target="real", **params):
    params = {"early_stopping": True, "split_criterion": "directional"} | params
    return estimators.ours(target, **params)


def data_of_ten_eras(target="real"):
    X, y, weights, _ = make_data(target)
    return X, y, weights, np.random.default_rng(5).integers(0, N_ERAS, N_SAMPLES)


class EraScorer:
    """A scorer that keeps the eras that it sees, first of the training rows."""

    def __init__(self):
        self.calls = []

    def __call__(self, estimator, X, y, eras, sample_weight=None):
        assert X.shape[0] == y.shape[0] == len(eras)
        self.calls.append(np.asarray(eras))
        return float(len(self.calls))


def held_out(eras, target="real", **params):
    """The labels held out of a fit, which are not trained on."""
    X, y, _, _ = make_data(target)
    scorer = EraScorer()
    model = ours(target, scoring=scorer, **params).fit(X, y, eras=eras)
    assert len(scorer.calls) == 2 * (model.n_iter_ + 1)
    for i, labels in enumerate(scorer.calls):
        assert np.array_equal(labels, scorer.calls[i % 2])
    train, validation = (set(labels.tolist()) for labels in scorer.calls[:2])
    assert not train & validation
    assert sum(map(len, scorer.calls[:2])) == len(y)
    assert model.validation_eras_.tolist() == sorted(validation)
    return validation


CODES = data_of_ten_eras()[3]
# project/test_era_labels.py has more kinds.
LABELS = {
    "int": (CODES, {8, 9}), "negative": (-CODES, {-1, 0}),
    # As strings are sorted: "week10" comes before "week2".
    "str": (np.char.add("week", (CODES + 1).astype(str)), {"week8", "week9"}),
}  # fmt: skip


@on_grid("labels split_criterion", LABELS, [*NAMES, BLEND], every=3)
def test_last_eras_are_held_out_by_the_order_of_labels(labels, split_criterion):
    labels, expected = labels
    is_text = expected == {"week8", "week9"}
    warned = pytest.warns(UserWarning, match="'week10' comes before 'week2'")
    params = {"validation_fraction": 0.2, "max_iter": 1}
    if is_text:
        params["era_order"] = "ordered"
    with warned if is_text else nullcontext():
        found = held_out(labels, split_criterion=split_criterion, **params)
    assert found == expected


@pytest.mark.parametrize(("n_eras", "validation_fraction", "n_held_out"), [
    (10, 0.1, 1), (10, 0.11, 2), (10, 0.9, 9), (10, 0.001, 1), (10, 1, 1), (10, 9, 9),
    # Not rounded up for the last digits: this share is 7.000000000000001 eras.
    (100, 0.07, 7),
])  # fmt: skip
@pytest.mark.parametrize("validation_eras", ["last", "random"])
def test_share_is_rounded_up(validation_eras, n_eras, validation_fraction, n_held_out):
    found = held_out(np.arange(N_SAMPLES) % n_eras, validation_eras=validation_eras,
                     validation_fraction=validation_fraction, split_criterion="gain",
                     max_iter=1)  # fmt: skip
    assert len(found) == n_held_out


@pytest.mark.parametrize(("params", "eras"), [
    ({"validation_eras": None}, CODES), ({"early_stopping": False}, CODES),
    ({"split_criterion": "gain"}, None),
    ({"split_criterion": "gain"}, np.zeros(N_SAMPLES)),
], ids=["rows of all eras", "no early stopping", "no eras", "one era"])  # fmt: skip
def test_no_eras_are_named_where_none_is_held_out(params, eras):
    X, y, _, _ = make_data()
    model = ours(max_iter=1).fit(X, y, eras=CODES)
    assert model.validation_eras_.tolist() == [9]
    model.set_params(**params).fit(X, y, eras=eras)
    assert not hasattr(model, "validation_eras_")


def test_random_eras_depend_on_the_random_state_only():
    params = {"validation_eras": "random", "validation_fraction": 2, "max_iter": 1}
    found = [held_out(CODES, random_state=seed, **params) for seed in range(8)]
    assert found == [held_out(CODES, random_state=seed, **params) for seed in range(8)]
    assert len({frozenset(labels) for labels in found}) > 4
    # By the labels' order, whatever their names.
    renamed = held_out(CODES * 3 + 1, random_state=0, **params)
    assert renamed == {label * 3 + 1 for label in found[0]}


@on_grid(
    "validation_fraction validation_eras", [0.91, 10, 11, 400], ["last", "random"],
    every=2)  # fmt: skip
def test_holding_out_all_eras_is_refused(validation_fraction, validation_eras):
    X, y, weights, eras = data_of_ten_eras()
    params = {"validation_eras": validation_eras, "split_criterion": "gain"}
    model = ours(validation_fraction=validation_fraction, **params)
    message = f"validation_fraction={validation_fraction} of 10 eras leaves no era to"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, eras=eras)
    # Nothing is held out of these.
    model.fit(X, y, eras=eras, X_val=X, y_val=y)
    model.set_params(early_stopping=False).fit(X, y, weights, eras=eras)
    assert_same_model(model, stock(early_stopping=False).fit(X, y, weights), X)
    model.set_params(early_stopping=True, validation_fraction=None).fit(X, y, eras=eras)


@on_grid(
    "validation_eras target eras", ["last", "random", None], ["real", "multiclass"],
    {"one era": ["a"] * N_SAMPLES, "no eras": None}, every=4)  # fmt: skip
def test_rows_are_held_out_at_random_where_eras_cannot(validation_eras, target, eras):
    X, y, weights, _ = make_data(target)
    model = ours(target, split_criterion="gain", validation_eras=validation_eras)
    model.fit(X, y, weights, eras=eras)
    assert_same_model(model, stock(target, early_stopping=True).fit(X, y, weights), X)


def split_rows(eras, validation_eras, n_held_out, seed, y=None):
    """Rows to train on and rows held out, stratified by `y` where drawn at random."""
    rows = np.arange(len(eras))
    if validation_eras is None:
        size = n_held_out / N_ERAS
        return train_test_split(rows, test_size=size, stratify=y, random_state=seed)
    if validation_eras == "last":
        drawn = rows[eras >= N_ERAS - n_held_out]
    else:
        splitter = GroupShuffleSplit(1, test_size=n_held_out, random_state=seed)
        ((_, drawn),) = splitter.split(eras, groups=eras)
    return np.setdiff1d(rows, drawn), np.sort(drawn)


def worst_era(estimator, X, y, eras, sample_weight=None):
    errors = (y - estimator.predict(X)) ** 2
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    of_eras = [eras == era for era in np.unique(eras)]
    return -max(np.average(errors[rows], weights=weights[rows]) for rows in of_eras)


SCORINGS = ["loss", None, "neg_mean_absolute_error", worst_era]


@pytest.mark.parametrize(
    ("target", "scoring", "split_criterion", "validation_eras", "weighted"), [
        *grid(["real"], SCORINGS, ["gain", "era", "directional"],
              ["last", "random", None], [False, True], every=6),
        *grid(["binary", "multiclass"], ["loss", "accuracy"], ["directional"],
              ["last", None], [False, True], every=3),
    ],
)  # fmt: skip
def test_fit_is_that_of_validation_data_given(
    target, scoring, split_criterion, validation_eras, weighted
):
    X, y, weights, eras = data_of_ten_eras(target)
    params = {"split_criterion": split_criterion, "scoring": scoring}
    model = ours(
        target, **params, validation_eras=validation_eras, validation_fraction=0.3
    ).fit(X, y, weights if weighted else None, eras=eras)
    strata = None if target == "real" else y
    train, held_out = split_rows(eras, validation_eras, 3, model._random_seed, strata)
    expected = ours(target, **params).fit(
        X[train], y[train], weights[train] if weighted else None, eras=eras[train],
        X_val=X[held_out], y_val=y[held_out], eras_val=eras[held_out],
        sample_weight_val=weights[held_out] if weighted else None)  # fmt: skip
    assert_same_model(model, expected, X)


@on_grid("validation_eras split_criterion", ["last", "random", None], ["gain", "era"])
def test_warm_start_keeps_the_eras_that_are_held_out(split_criterion, validation_eras):
    X, y, _, eras = data_of_ten_eras()
    params = {"split_criterion": split_criterion, "validation_eras": validation_eras,
              "validation_fraction": 0.3, "max_features": 0.5,
              "random_state": None}  # fmt: skip
    for _ in range(2):
        scorer = EraScorer()
        model = ours(**params, max_iter=2, warm_start=True, scoring=scorer)
        model.fit(X, y, eras=eras)
        first = scorer.calls[:2]
        scorer.calls.clear()
        model.set_params(max_iter=5).fit(X, y, eras=eras)
        assert (model.n_iter_, len(scorer.calls)) == (5, 2 * 3)
        for calls in (scorer.calls[:2], scorer.calls[-2:]):
            assert all(map(np.array_equal, calls, first))


@on_grid("scoring split_criterion", ["loss", "accuracy", None], ["gain", "directional"])
def test_class_of_held_out_eras_only(split_criterion, scoring):
    """It is a class of the model, though no training row has it."""
    X, _, _, eras = data_of_ten_eras()
    y = np.where(eras == 9, "c", np.where(np.nan_to_num(X[:, 1]) > 0, "b", "a"))
    model = ours("multiclass", split_criterion=split_criterion, scoring=scoring)
    with pytest.warns(UserWarning, match=r"the only ones with class\(es\) c of y"):
        model.fit(X, y, eras=eras)
    assert model.classes_.tolist() == ["a", "b", "c"]
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert (probabilities[:, 2] < 0.01).all()
    assert np.isfinite(model.validation_score_).all()


@pytest.mark.parametrize(("weighted_eras", "message"), [
    (range(9), "that early stopping holds out"), ([9], "that early stopping leaves"),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.int8, np.float64])
def test_a_part_without_weight_is_refused(dtype, weighted_eras, message):
    X = np.random.default_rng(0).integers(-9, 9, (100, 2)).astype(dtype)
    eras = np.repeat(range(10), 10)
    weights = np.isin(eras, weighted_eras).astype(float)
    with pytest.raises(ValueError, match=rf"^sample_weight is 0 in all rows {message}"):
        ours(early_stopping=True).fit(X, X[:, 0], weights, eras=eras)
