"""RuleEnsembleClassifier as its users meet it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, cross_validate

from helpers import rules as reference
from sklearn_era.rules import RuleEnsembleClassifier


def make_rows(n_samples=600, seed=0):
    """A number, a category, missing values, and a class that follows from both."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n_samples).round(),
            "noise": rng.normal(size=n_samples),
            "plan": pd.Categorical(rng.choice(["basic", "plus", "pro"], n_samples)),
        }
    )
    y = (X["age"] > 50) & (X["plan"] == "basic") | (rng.random(n_samples) < 0.05)
    X.loc[rng.random(n_samples) < 0.1, "noise"] = np.nan
    return X, np.where(y, "leaves", "stays")


def fitted(X, y, eras=None, groups=None, sample_weight=None, **parameters):
    return RuleEnsembleClassifier(**parameters).fit(
        X, y, sample_weight, eras=eras, groups=groups
    )


def test_the_rule_is_found_and_reads_as_one_would_say_it():
    X, y = make_rows()
    est = fitted(X, y, n_estimators=1, n_bins=255)
    # The class is the second in order: of those who stay, no rule covers more.
    (text,) = fitted(X, y == "leaves", n_estimators=1, n_bins=255).rules_.text
    assert text == "age > 50.5 and plan = basic"
    assert est.rules_.class_label.tolist() == ["stays"]


@pytest.mark.parametrize("quality", ["youden", "laplace", "m_estimate"])
@pytest.mark.parametrize("variance_of", [None, "loss", "score"])
@pytest.mark.parametrize("disjunctions", [False, True])
def test_a_fit_is_the_references(quality, variance_of, disjunctions):
    """Every round of boosting, by masks of rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0] + X[:, 1]) + rng.normal(size=250) > 0).astype(int)
    weights = rng.uniform(0.5, 2.0, 250)
    labels = np.arange(250) % 3
    est = RuleEnsembleClassifier(
        n_estimators=8,
        beam_width=4,
        n_bins=5,
        quality=quality,
        m=50.0,
        learning_rate=0.7,
        l2_regularization=0.5,
        min_samples_rule=5,
        disjunctions=disjunctions,
        feature_penalty=[0.0, 0.2, 0.0, 0.0],
        feature_penalty_noise=0.0,
        feature_penalty_scale=0.5,
        variance_penalty=0.0 if variance_of is None else 0.3,
        variance_of=variance_of or "loss",
        variance_power=0.5,
    ).fit(X, y, weights, groups=labels)
    mapper = est._bin_mapper
    X_binned, missing_bin = mapper.transform(X), mapper.missing_values_bin_idx_
    state = reference.State(
        X_binned,
        y == 1,
        weights,
        np.zeros(250),
        np.array([0.0, 0.1, 0.0, 0.0]),
        quality,
        50.0,
        0.7,
        0.5,
        5,
        None if variance_of is None else 2 * labels + y,
        variance_of or "loss",
        0.3,
        0.5,
    )
    conditions = reference.list_conditions(
        X_binned, mapper.n_bins_non_missing_.tolist(), [False] * 4, missing_bin
    )
    for _ in range(8):
        rule, _ = state.best_of_beam(conditions, 4, 2, disjunctions)
        state.add(rule)
    np.testing.assert_allclose(est.decision_function(X), state.scores, rtol=1e-9)


def test_scores_are_sums_over_rules():
    X, y = make_rows()
    est = fitted(X, y, n_estimators=20)
    table = est.rule_table(X, y, as_frame=True)
    scores = est.decision_function(X)
    signs = np.array(
        [np.where(r.rule.covers(_bins(est, X)), 1, -1) for r in est._rules]
    )
    expected = est.intercept_[1] + table["coefficient"].to_numpy() @ signs
    np.testing.assert_allclose(scores, expected)
    np.testing.assert_allclose(est.predict_proba(X)[:, 1], expit(scores))
    assert (est.predict(X) == est.classes_[(scores > 0).astype(int)]).all()


def _bins(est, X):
    return est._bin_mapper.transform(est._columns_of(X, reset=False)[0])


def test_boosting_lowers_the_log_loss():
    X, y = make_rows()
    losses = [
        -np.log(fitted(X, y, n_estimators=n).predict_proba(X))[
            np.arange(len(y)), (y == "stays").astype(int)
        ].mean()
        for n in (1, 3, 10, 30)
    ]
    assert all(np.diff(losses) < 0)


def test_the_table_has_rates_in_all_and_by_era():
    X, y = make_rows()
    eras = np.arange(len(y)) % 2
    weights = np.random.default_rng(0).uniform(size=len(y))
    est = fitted(X, y, eras=eras, sample_weight=weights, n_estimators=5)
    table = est.rules_
    covered = est._rules[0].rule.covers(_bins(est, X))
    is_of_class = y == table.class_label[0]

    def share(rows):
        return weights[rows & covered].sum() / weights[rows].sum()

    assert table.coverage[0] == pytest.approx(share(np.full(len(y), True)))
    assert table.tpr[0] == pytest.approx(share(is_of_class))
    assert table.fpr[0] == pytest.approx(share(~is_of_class))
    for j in range(2):
        of_era = eras == j
        assert table.tpr_by_era[0, j] == pytest.approx(share(is_of_class & of_era))
        assert table.fpr_by_era[0, j] == pytest.approx(share(~is_of_class & of_era))
    frame = est.rule_table(X, y, weights, eras=eras, as_frame=True)
    np.testing.assert_allclose(frame["fpr 1"], table.fpr_by_era[:, 1])
    assert (np.diff(np.abs(frame["coefficient"])) <= 0).all()
    only_one = est.rule_table(X[is_of_class], y[is_of_class])
    assert np.isnan(only_one.fpr).all()
    assert "era_labels" not in only_one


def test_each_of_three_classes_has_rules():
    X, y = load_iris(return_X_y=True)
    est = fitted(X, y, n_estimators=10)
    assert set(est.rules_.class_label) == {0, 1, 2}
    assert est.score(X, y) > 0.95
    probability = est.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert est.decision_function(X).shape == probability.shape == (150, 3)


def test_missing_values_and_unknown_categories():
    X, y = make_rows()
    X["noise"] = np.where(y == "stays", np.nan, X["noise"].fillna(0.0))
    est = fitted(X, y, n_estimators=1)
    assert est.rules_.text.tolist() == ["noise is missing"]
    X, y = make_rows()
    est = fitted(X, y, n_estimators=20)
    unknown, missing = X.head(20).copy(), X.head(20).copy()
    unknown["plan"] = pd.Categorical(["new"] * 20)
    missing["plan"] = missing["plan"].where(np.full(20, False))
    np.testing.assert_array_equal(
        est.decision_function(unknown), est.decision_function(missing)
    )


def test_a_column_of_numbers_has_bins_of_equal_width_or_weight():
    x = np.r_[np.linspace(0, 1, 990), np.linspace(1, 100, 10)]
    X, y = x[:, np.newaxis], x > 0.5
    uniform = fitted(X, y, n_estimators=1, n_bins=4, binning="uniform")
    # The bins from 25 to 100 hold 8 rows; thresholds that part no rows are left out.
    np.testing.assert_allclose(uniform._bin_mapper.bin_thresholds_[0], [25, 50, 75])
    quantile = fitted(X, y, n_estimators=1, n_bins=4)
    np.testing.assert_allclose(
        quantile._bin_mapper.bin_thresholds_[0], [0.25, 0.5, 0.76], atol=0.02
    )
    few = fitted(X.round(1), y, n_estimators=1, n_bins=255, binning="uniform")
    assert few._bin_mapper.bin_thresholds_[0].size == np.unique(X.round(1)).size - 1


def test_a_penalised_column_is_left_alone():
    rng = np.random.default_rng(0)
    y = np.arange(500) % 2
    X = y[:, np.newaxis] + rng.normal(size=(500, 2)) * [1.0, 0.3]
    assert "x1" in fitted(X, y, n_estimators=1).rules_.text[0]
    for penalty in ([0, 2.0], {1: 2.0}):
        est = fitted(X, y, n_estimators=30, feature_penalty=penalty)
        assert not any("x1" in text for text in est.rules_.text)
    named = pd.DataFrame(X, columns=["a", "b"])
    by_name = fitted(named, y, n_estimators=30, feature_penalty={"b": 2.0})
    np.testing.assert_array_equal(by_name.predict_proba(named), est.predict_proba(X))


def test_what_is_forbidden_is_in_no_rule():
    """Not even where there is no other."""
    X = np.column_stack([np.arange(100) % 2, np.zeros(100)])
    with pytest.warns(UserWarning, match="found no rule"):
        fitted(X, X[:, 0] > 0, feature_penalty=[3.0, 0.0])


def test_empty_bins_have_room():
    """Bins without a training row: of categories without weight, above the maximum."""
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    X = pd.DataFrame({"letter": pd.Categorical(rng.choice(letters, 600))})
    y, kept = rng.integers(0, 2, 600), X["letter"].isin(["a", "b"]).to_numpy()
    weighed = fitted(X, y, sample_weight=kept.astype(float), n_estimators=5)
    alone = fitted(X[kept], y[kept], n_estimators=5)
    np.testing.assert_allclose(weighed.decision_function(X), alone.decision_function(X))
    x = np.minimum(rng.normal(size=(400, 1)), 0.5)
    assert (fitted(x, y[:400], n_estimators=5).rules_.coverage > 0).all()


def test_ties_and_infinity_have_bins_of_equal_width():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(3000) < 0.9, 0, rng.uniform(0, 80, 3000))
    x[:2] = 0, 80
    y = x > 15
    est = fitted(x[:, np.newaxis], y, n_estimators=1, n_bins=8, binning="uniform")
    np.testing.assert_allclose(
        est._bin_mapper.bin_thresholds_[0], np.arange(10, 80, 10)
    )
    powers = 2.0 ** (np.arange(400) % 8)[:, np.newaxis]
    est = fitted(powers, y[:400], n_estimators=1, n_bins=8, binning="uniform")
    assert est._bin_mapper.bin_thresholds_[0].size == 7
    infinite = np.where(np.arange(100) % 2, np.inf, -np.inf)[:, np.newaxis]
    for binning in ("uniform", "quantile"):
        est = fitted(infinite, infinite[:, 0] > 0, n_bins=2, binning=binning)
        assert est.score(infinite, infinite[:, 0] > 0) == 1


def test_large_numbers_keep_their_digits():
    X = np.array([[20240114.0], [20240116.0]] * 20)
    (text,) = fitted(X, X[:, 0] > 20240115, n_estimators=1).rules_.text
    assert text == "x0 > 20240115"


def test_a_fit_that_is_refused_changes_nothing():
    X, y = make_rows()
    est = fitted(X, y, n_estimators=5)
    before = est.predict_proba(X)
    for parameters in ({"feature_penalty": [1, 2]}, {"variance_penalty": 1.0}):
        with pytest.raises(ValueError, match=r"feature_penalty|variance_penalty"):
            clone(est).set_params(**parameters).fit(X, y)
        with pytest.raises(ValueError, match=r"feature_penalty|variance_penalty"):
            est.set_params(**parameters).fit(X, np.arange(len(y)) % 3)
        np.testing.assert_array_equal(est.predict_proba(X), before)
        assert est.classes_.tolist() == ["leaves", "stays"]
        est.set_params(feature_penalty=None, variance_penalty=0.0)


def test_a_fit_that_fails_in_its_rules_changes_nothing():
    """The loss overflows, which is found when the rules of others are done."""
    X, y = make_rows()
    eras = np.arange(len(y)) % 2
    est = fitted(X, y, n_estimators=5)
    before = est.predict_proba(X)
    est.set_params(variance_penalty=1.0, learning_rate=1e6)
    with pytest.raises(ValueError, match="overflows"):
        est.fit(X, np.arange(len(y)) % 3, eras=eras)
    np.testing.assert_array_equal(est.predict_proba(X), before)
    assert est.classes_.tolist() == ["leaves", "stays"]


def test_steps_that_overflow_have_probabilities():
    X, y = load_iris(return_X_y=True)
    probability = fitted(X, y, n_estimators=5, learning_rate=1e3).predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)


def test_the_soft_mask_is_drawn_by_random_state():
    X, y = make_rows()
    soft = {"feature_penalty": {"age": 0.3}, "feature_penalty_noise": 0.3}
    one, same, other = (
        fitted(X, y, n_estimators=20, random_state=seed, **soft).decision_function(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    y = X[:, 0] + rng.normal(size=20_000) > 0
    eras = np.arange(20_000) % 5
    one, two = (
        fitted(X, y, eras, n_estimators=5, variance_penalty=0.1, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_groups_are_a_column_labels_or_eras():
    X, y = make_rows()
    X["site"] = np.arange(len(y)) % 3
    parameters = {"n_estimators": 10, "variance_penalty": 0.3}
    scores = [
        fitted(X, y, **given, **parameters).decision_function(X)
        for given in (
            {"groups": "site"},
            {"groups": X["site"], "eras": np.zeros(len(y))},
            {"eras": X["site"]},
        )
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])
    assert (scores[0] != fitted(X, y, n_estimators=10).decision_function(X)).any()


def test_groups_of_splitters_are_others():
    """With routing enabled, both may be called `groups`; eras come unasked."""
    X, y = make_rows()
    groups = np.arange(len(y)) % 5
    with config_context(enable_metadata_routing=True):
        given = {"groups": groups, "eras": groups}
        scores = cross_validate(
            RuleEnsembleClassifier(5), X, y, params=given, cv=GroupKFold(3)
        )
        asks = RuleEnsembleClassifier(5, variance_penalty=0.1)
        asks.set_fit_request(groups=True)
        others = cross_validate(asks, X, y, params={"groups": groups}, cv=3)
    assert min(*scores["test_score"], *others["test_score"]) > 0.8


def test_rows_without_weight_are_as_if_not_there():
    X, y = make_rows()
    kept = np.arange(len(y)) % 3 > 0
    weighed = fitted(X, y, sample_weight=kept.astype(float), n_estimators=10)
    alone = fitted(X[kept], y[kept], n_estimators=10)
    np.testing.assert_allclose(weighed.decision_function(X), alone.decision_function(X))


def test_a_fitted_ensemble_is_copied_and_kept():
    X, y = make_rows()
    est = fitted(X, y, eras=np.arange(len(y)) % 2, n_estimators=5)
    again = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(again.predict_proba(X), est.predict_proba(X))
    assert again.rules_.text.tolist() == est.rules_.text.tolist()
    np.testing.assert_array_equal(
        clone(est).fit(X, y).predict_proba(X), est.predict_proba(X)
    )


def test_where_there_is_no_rule_all_rows_are_alike():
    X, y = np.zeros((20, 2)), np.arange(20) % 4 == 0
    with pytest.warns(UserWarning, match="found no rule"):
        est = fitted(X, y)
    np.testing.assert_allclose(est.predict_proba(X)[:, 1], 0.25, rtol=0.02)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"feature_penalty": [0, -1, 0]}, "feature_penalty"),
        ({"feature_penalty": [0, 1]}, "feature_penalty"),
        ({"feature_penalty": {"agee": 1}}, "Did you mean 'age'"),
        ({"feature_penalty_scale": -1}, "feature_penalty_scale"),
        ({"variance_penalty": -1}, "variance_penalty"),
        (
            {"variance_penalty": 1},
            r"variance_penalty=1 needs groups: pass fit\(X, y, g",
        ),
        (
            {"variance_penalty": 1, "groups": "sitee"},
            "groups='sitee' is no column of X",
        ),
        (
            {"variance_penalty": 1, "groups": np.arange(600)},
            "600 of 600 groups of a label and a class are a single row.* label 0",
        ),
        ({"variance_penalty": 1, "eras": [1, 2]}, "eras has 2 labels"),
    ],
)
def test_errors_say_what_to_do(parameters, message):
    X, y = make_rows()
    with pytest.raises(ValueError, match=message):
        fitted(X, y, **parameters)


def test_more_rows_than_rules_count_are_refused(monkeypatch):
    monkeypatch.setattr("sklearn_era.rules._estimator.MAX_ROWS", 10)
    X = np.arange(10.0)[:, np.newaxis]
    with pytest.raises(
        ValueError, match=r"^X has 10 rows, and rules count up to 9: fit"
    ):
        RuleEnsembleClassifier().fit(X, X[:, 0] > 4)
    RuleEnsembleClassifier().fit(X[:9], X[:9, 0] > 4)


def test_a_single_class_is_refused():
    X, _ = make_rows()
    with pytest.raises(ValueError, match="y holds 1 class, a; rules tell"):
        fitted(X, np.full(len(X), "a"))


@pytest.mark.parametrize("binning", ["uniform", "quantile"])
def test_a_column_without_a_value_is_in_no_rule(binning):
    X, y = make_rows()
    X = X.assign(noise=np.nan, blank=pd.Categorical([None] * len(X)))
    with pytest.warns(UserWarning, match=r"X: column\(s\) 'noise', 'blank' have no v"):
        est = fitted(X, y, binning=binning)
    assert est.rules_.text.size
    assert not any("noise" in text or "blank" in text for text in est.rules_.text)
    odd = X.assign(noise=np.arange(len(X)) - 5, blank=pd.Categorical(y))
    np.testing.assert_array_equal(est.predict_proba(odd), est.predict_proba(X))
    plain = fitted(X.drop(columns=["noise", "blank"]), y, binning=binning)
    np.testing.assert_array_equal(
        est.predict_proba(X), plain.predict_proba(X.drop(columns=["noise", "blank"]))
    )


def test_a_loss_that_overflows_is_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200) > 0
    with pytest.raises(ValueError, match="loss or score of every rule overflows"):
        fitted(X, y, eras=np.arange(200) % 2, variance_penalty=1, learning_rate=1e6)


def test_classes_that_were_not_fitted_have_no_rates():
    X, y = make_rows()
    est = fitted(X, y, n_estimators=2)
    with pytest.raises(
        ValueError, match="y holds 'other', which is no class of the fit"
    ):
        est.rule_table(X, np.where(np.arange(len(y)) == 0, "other", y))
