"""RuleEnsembleClassifier as its users meet it."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, cross_validate

from helpers import rules as reference
from helpers.grids import on_grid
from sklearn_era.model_files import load_model, save_model
from sklearn_era.rules import RuleEnsembleClassifier


def make_rows(n_samples=600, seed=0):
    """A number, a category, missing values, and a class that follows from both."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "age": rng.uniform(20, 80, n_samples).round(),
        "noise": rng.normal(size=n_samples),
        "plan": pd.Categorical(rng.choice(["basic", "plus", "pro"], n_samples)),
    })  # fmt: skip
    y = (X["age"] > 50) & (X["plan"] == "basic") | (rng.random(n_samples) < 0.05)
    X.loc[rng.random(n_samples) < 0.1, "noise"] = np.nan
    return X, np.where(y, "leaves", "stays")


X, Y = make_rows()
ERAS = np.arange(600) % 2


def fitted(X, y, eras=None, groups=None, sample_weight=None, **parameters):
    est = RuleEnsembleClassifier(**{"n_estimators": 5} | parameters)
    return est.fit(X, y, sample_weight, eras=eras, groups=groups)


def scores(X, y, **options):
    return fitted(X, y, **options).decision_function(X)


def test_the_rule_is_found_and_reads_as_one_would_say_it():
    one = {"n_estimators": 1, "n_bins": 255}
    # The class is the second in order: of those who stay, no rule covers more.
    (text,) = fitted(X, Y == "leaves", **one).rules_.text
    assert text == "age > 50.5 and plan = basic"
    assert fitted(X, Y, **one).rules_.class_label.tolist() == ["stays"]
    # Large numbers keep their digits.
    large = np.array([[20240114.0], [20240116.0]] * 20)
    (text,) = fitted(large, large[:, 0] > 20240115, n_estimators=1).rules_.text
    assert text == "x0 > 20240115"


@pytest.mark.parametrize("binning", ["uniform", "quantile"])
@pytest.mark.parametrize("scale", [1, -3e-9, 1e12])
def test_a_rule_covers_the_rows_that_its_text_says(scale, binning):
    rng = np.random.default_rng(0)
    near = scale * (1 + 1e-9 * rng.normal(size=400))
    X = np.column_stack([near, scale * rng.integers(400, size=400) / 365])
    y = np.digitize(near, np.quantile(near, [0.2, 0.4, 0.6])) % 2
    est = fitted(X, y, n_estimators=20, max_depth=1, binning=binning)
    for rule, text in zip(est._rules, est.rules_.text, strict=True):
        name, sign, value = text.split()
        column = X[:, int(name[1])]
        rows = column > float(value) if sign == ">" else column <= float(value)
        assert_array_equal(rule.rule.covers(est._binned(X)), rows)
    assert len({*est.rules_.text}) == len(est._rules) > 2


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("names", ["week", ["week"], ["week", "site"]])
def test_names_of_columns_of_eras(make, names, tmp_path):
    of_rows = pd.DataFrame({"week": ERAS.astype(str), "site": ERAS % 3})
    taken = of_rows[names] if isinstance(names, list) else of_rows["week"]
    rest = of_rows.drop(columns=names)
    plain, frame = make(X.join(rest)), make(of_rows.join(X))
    frame = frame[[*plain.columns, *pd.DataFrame(taken).columns]]
    options = {"variance_penalty": 0.3, "n_estimators": 4}
    expected = fitted(plain, Y, eras=taken, **options)
    model = fitted(frame, Y, eras=names, **options)
    assert model.feature_names_in_.tolist() == [*plain.columns]
    save_model(model, tmp_path / "m.era")
    p = expected.predict_proba(plain)
    for one in (model, load_model(tmp_path / "m.era")[0]):
        for rows in (plain, frame):
            assert_array_equal(one.predict_proba(rows), p)
        found = one.rule_table(frame, Y, eras=names, as_frame=True)
        table = expected.rule_table(plain, Y, eras=taken, as_frame=True)
        pd.testing.assert_frame_equal(found, table)
    by_groups = fitted(frame, Y, eras=names, groups="week", **options)
    expected = fitted(plain, Y, groups=of_rows.week, **options)
    assert_array_equal(by_groups.predict_proba(frame), expected.predict_proba(plain))
    with pytest.raises(ValueError, match=r"^eras='wek': 'wek' is no .* 'week'\?"):
        fitted(frame, Y, eras="wek")


@on_grid(
    "quality variance_of disjunctions", ["youden", "laplace", "m_estimate"],
    [None, "loss", "score", "probability"], [False, True], every=3)  # fmt: skip
def test_a_fit_is_the_references(quality, variance_of, disjunctions):
    """Every round of boosting, by masks of rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(250, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0] + X[:, 1]) + rng.normal(size=250) > 0).astype(int)
    weights, labels = rng.uniform(0.5, 2.0, 250), np.arange(250) % 3
    shared = {
        "quality": quality, "m": 50.0, "learning_rate": 0.7, "l2_regularization": 0.5,
        "min_samples_rule": 5, "variance_of": variance_of or "loss",
        "variance_penalty": 0.3 if variance_of else 0.0, "variance_power": 0.5,
    }  # fmt: skip
    est = fitted(
        X, y, sample_weight=weights, groups=labels, n_estimators=4, beam_width=4,
        n_bins=5, disjunctions=disjunctions, feature_penalty=[0.0, 0.2, 0.0, 0.0],
        feature_penalty_noise=0.0, feature_penalty_scale=0.5, **shared)  # fmt: skip
    mapper = est._bin_mapper
    X_binned, missing_bin = mapper.transform(X), mapper.missing_values_bin_idx_
    state = reference.State(
        X_binned, y == 1, weights, np.zeros(250), np.array([0.0, 0.1, 0.0, 0.0]),
        groups=2 * labels + y if variance_of else None, **shared)  # fmt: skip
    conditions = reference.list_conditions(
        X_binned, mapper.n_bins_non_missing_.tolist(), [False] * 4, missing_bin
    )
    for _ in range(4):
        state.add(state.best_of_beam(conditions, 4, 2, disjunctions)[0])
    assert_allclose(est.decision_function(X), state.scores, rtol=1e-9)


def test_scores_are_sums_over_rules():
    est = fitted(X, Y, n_estimators=20)
    table, scores = est.rule_table(X, Y, as_frame=True), est.decision_function(X)
    signs = [np.where(r.rule.covers(est._binned(X)), 1, -1) for r in est._rules]
    expected = est.intercept_[1] + table["coefficient"].to_numpy() @ np.array(signs)
    assert_allclose(scores, expected)
    assert_allclose(est.predict_proba(X)[:, 1], expit(scores))
    assert (est.predict(X) == est.classes_[(scores > 0).astype(int)]).all()


def test_the_table_has_rates_in_all_and_by_era():
    weights = np.random.default_rng(0).uniform(size=len(Y))
    est = fitted(X, Y, ERAS, sample_weight=weights)
    table, covered = est.rules_, est._rules[0].rule.covers(est._binned(X))
    of_class = table.class_label[0] == Y

    def share(rows):
        return pytest.approx(weights[rows & covered].sum() / weights[rows].sum())

    assert table.coverage[0] == share(np.full(len(Y), True))
    for name, rows in (("tpr", of_class), ("fpr", ~of_class)):
        assert table[name][0] == share(rows)
        for j in range(2):
            assert table[f"{name}_by_era"][0, j] == share(rows & (j == ERAS))
    frame = est.rule_table(X, Y, weights, eras=ERAS, as_frame=True)
    assert_allclose(frame["fpr 1"], table.fpr_by_era[:, 1])
    assert (np.diff(np.abs(frame["coefficient"])) <= 0).all()
    only_one = est.rule_table(X[of_class], Y[of_class])
    assert np.isnan(only_one.fpr).all()
    assert "era_labels" not in only_one
    with pytest.raises(ValueError, match="y holds 'x', which is no class of the fit"):
        est.rule_table(X, np.where(np.arange(len(Y)) == 0, "x", Y))


def test_each_of_three_classes_has_rules():
    X, y = load_iris(return_X_y=True)
    est = fitted(X, y, n_estimators=10)
    assert set(est.rules_.class_label) == {0, 1, 2}
    assert est.score(X, y) > 0.95
    assert est.decision_function(X).shape == (150, 3)
    # Steps that overflow have probabilities, too.
    for model in (est, fitted(X, y, learning_rate=1e3)):
        assert_allclose(model.predict_proba(X).sum(axis=1), np.ones(150))


def test_missing_values_and_unknown_categories():
    noise = np.where(Y == "stays", np.nan, X["noise"].fillna(0.0))
    one_rule = fitted(X.assign(noise=noise), Y, n_estimators=1)
    assert one_rule.rules_.text.tolist() == ["noise is missing"]
    est = fitted(X, Y, n_estimators=20)
    unknown = X.assign(plan=pd.Categorical(["new"] * 600))
    missing = X.assign(plan=X["plan"].where(np.full(600, False)))
    assert_array_equal(est.decision_function(unknown), est.decision_function(missing))


def test_a_column_of_numbers_has_bins_of_equal_width_or_weight():
    def thresholds(x, y, n_bins, **binning):
        est = fitted(x[:, np.newaxis], y, n_estimators=1, n_bins=n_bins, **binning)
        return est._bin_mapper.bin_thresholds_[0]

    uniform = {"binning": "uniform"}
    x = np.r_[np.linspace(0, 1, 990), np.linspace(1, 100, 10)]
    # The bins from 25 to 100 hold 8 rows; thresholds that part no rows are left out.
    assert_allclose(thresholds(x, x > 0.5, 4, **uniform), [25, 50, 75])
    assert_allclose(thresholds(x, x > 0.5, 4), [0.25, 0.5, 0.76], atol=0.02)
    few = x.round(1)
    assert thresholds(few, x > 0.5, 255, **uniform).size == np.unique(few).size - 1
    # Ties and infinity.
    rng = np.random.default_rng(0)
    x = np.where(rng.random(3000) < 0.9, 0, rng.uniform(0, 80, 3000))
    x[:2] = 0, 80
    assert_allclose(thresholds(x, x > 15, 8, **uniform), np.arange(10, 80, 10))
    assert thresholds(2.0 ** (np.arange(400) % 8), x[:400] > 15, 8, **uniform).size == 7
    x = np.r_[rng.uniform(0, 80, 400), 0, 80, np.inf, -np.inf]
    assert_allclose(thresholds(x, x > 15, 8, **uniform), np.arange(10, 80, 10))
    infinite = np.where(np.arange(100) % 2, np.inf, -np.inf)[:, np.newaxis]
    for binning in ("uniform", "quantile"):
        est = fitted(infinite, infinite[:, 0] > 0, n_bins=2, binning=binning)
        assert est.score(infinite, infinite[:, 0] > 0) == 1


def test_of_rules_that_tie_the_one_of_fewer_conditions_is_taken():
    """A second condition loses as much of the class as of the others."""
    a, b = [1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0, 1, 1]
    y = np.repeat([1, 0], 4)
    shortest = {"n_estimators": 1, "max_depth": 2, "min_samples_rule": 1}
    est = fitted(np.column_stack([a, b]), y, quality="youden", **shortest)
    assert est.rules_.text.tolist() == ["x0 > 0.5"]


def test_a_penalised_column_is_left_alone():
    rng, y = np.random.default_rng(0), np.arange(500) % 2
    X = y[:, np.newaxis] + rng.normal(size=(500, 2)) * [1.0, 0.3]
    assert "x1" in fitted(X, y, n_estimators=1).rules_.text[0]
    for penalty in ([0, 2.0], {1: 2.0}):
        est = fitted(X, y, n_estimators=30, feature_penalty=penalty)
        assert not any("x1" in text for text in est.rules_.text)
    named = pd.DataFrame(X, columns=["a", "b"])
    by_name = fitted(named, y, n_estimators=30, feature_penalty={"b": 2.0})
    assert_array_equal(by_name.predict_proba(named), est.predict_proba(X))
    # Not even where there is no other.
    X = np.column_stack([np.arange(100) % 2, np.zeros(100)])
    none = {"n_estimators": 100, "feature_penalty": [3.0, 0.0]}
    with pytest.warns(UserWarning, match="found no rule"):
        est = fitted(X, np.arange(100) % 4 == 0, **none)
    assert_allclose(est.predict_proba(X)[:, 1], 0.25, rtol=0.02)  # all are alike


def test_rows_without_weight_are_as_if_not_there():
    """Bins without a training row too: categories without weight, above the maximum."""
    rng = np.random.default_rng(0)
    letters = pd.Categorical(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 600))
    frame = pd.DataFrame({"letter": letters})
    few = frame["letter"].isin(["a", "b"]).to_numpy()
    for rows, y, kept in ((X, Y, np.arange(600) % 3 > 0), (frame, ERAS, few)):
        weighed = fitted(rows, y, sample_weight=kept.astype(float))
        alone = fitted(rows[kept], y[kept])
        assert_allclose(weighed.decision_function(rows), alone.decision_function(rows))
    x = np.minimum(rng.normal(size=(400, 1)), 0.5)
    assert (fitted(x, rng.integers(0, 2, 400)).rules_.coverage > 0).all()


def test_the_soft_mask_is_drawn_by_random_state():
    soft = {"feature_penalty": {"age": 0.3}, "feature_penalty_noise": 0.3}
    soft["n_estimators"] = 20
    one, same, other = (scores(X, Y, random_state=seed, **soft) for seed in (0, 0, 1))
    assert_array_equal(one, same)
    assert (one != other).any()


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    y = X[:, 0] + rng.normal(size=20_000) > 0
    params = {"eras": np.arange(20_000) % 5, "variance_penalty": 0.1}
    one, two = (scores(X, y, **params, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_array_equal(one, two)


def test_groups_are_a_column_labels_or_eras():
    with_site = X.assign(site=np.arange(600) % 3)
    site = with_site["site"]
    by_name = scores(with_site, Y, groups="site", variance_penalty=0.3)
    for given in ({"groups": site, "eras": np.zeros(600)}, {"eras": site}):
        assert_array_equal(scores(with_site, Y, variance_penalty=0.3, **given), by_name)
    assert (by_name != scores(with_site, Y)).any()
    arrow = pa.table({name: with_site[name].to_numpy() for name in ("age", "site")})
    of_arrow = scores(arrow, Y, groups="site", variance_penalty=0.3)
    by_name = scores(with_site[["age", "site"]], Y, groups="site", variance_penalty=0.3)
    assert_array_equal(of_arrow, by_name)


def test_groups_of_splitters_are_others():
    """With routing enabled, both may be called `groups`; eras come unasked."""
    groups = np.arange(600) % 5
    with config_context(enable_metadata_routing=True):
        given, plain = {"groups": groups, "eras": groups}, RuleEnsembleClassifier(5)
        own = cross_validate(plain, X, Y, params=given, cv=GroupKFold(3))
        asks = RuleEnsembleClassifier(5, variance_penalty=0.1)
        asks.set_fit_request(groups=True)
        others = cross_validate(asks, X, Y, params={"groups": groups}, cv=3)
    assert min(*own["test_score"], *others["test_score"]) > 0.8


@pytest.mark.parametrize(("given", "message"), [
    ({"feature_penalty": [0, -1, 0]}, "feature_penalty"),
    ({"feature_penalty": [0, 1]}, "feature_penalty"),
    ({"feature_penalty": {"agee": 1}}, "Did you mean 'age'"),
    ({"feature_penalty_scale": -1}, "feature_penalty_scale"),
    ({"variance_penalty": -1}, "variance_penalty"),
    ({"variance_penalty": 1}, r"y=1 needs groups: pass fit\(X, y, g"),
    ({"variance_penalty": 1, "groups": "sitee"}, "groups='sitee' is no column"),
    ({"variance_penalty": 1, "groups": np.arange(600)},
     "600 of 600 groups of a label and a class are a single row.* label 0"),
    ({"variance_penalty": 1, "eras": [1, 2]}, "eras has 2 labels"),
    # Which is found when the rules of other classes are done.
    ({"variance_penalty": 1, "eras": ERAS, "learning_rate": 1e6},
     "loss or score of every rule overflows"),
    ({"y": np.full(600, "a")}, "y holds 1 class, a; rules tell"),
    ({"y": None}, "Classifier requires y to be passed, but the target y is None"),
])  # fmt: skip
def test_errors_say_what_to_do_and_leave_the_model_of_before(given, message):
    est, rows = fitted(X, Y), ("y", "eras", "groups")
    before = est.predict_proba(X)
    arguments = {"y": np.arange(600) % 3} | {x: given[x] for x in rows if x in given}
    est.set_params(**{name: x for name, x in given.items() if name not in rows})
    with pytest.raises(ValueError, match=message):
        est.fit(X, **arguments)
    assert_array_equal(est.predict_proba(X), before)
    assert est.classes_.tolist() == ["leaves", "stays"]


def test_more_rows_than_rules_count_are_refused(monkeypatch):
    monkeypatch.setattr("sklearn_era.rules._estimator.MAX_ROWS", 10)
    X = np.arange(10.0)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"^X has 10 rows, and rules count up to 9: f"):
        fitted(X, X[:, 0] > 4)
    fitted(X[:9], X[:9, 0] > 4)


@pytest.mark.parametrize("binning", ["uniform", "quantile"])
def test_a_column_without_a_value_is_in_no_rule(binning):
    empty = X.assign(noise=np.nan, blank=pd.Categorical([None] * len(X)))
    with pytest.warns(UserWarning, match=r"X: column\(s\) 'noise', 'blank' have no v"):
        est = fitted(empty, Y, binning=binning)
    assert est.rules_.text.size
    assert not any("noise" in text or "blank" in text for text in est.rules_.text)
    expected = est.predict_proba(empty)
    odd = empty.assign(noise=np.arange(len(X)) - 5, blank=pd.Categorical(Y))
    assert_array_equal(est.predict_proba(odd), expected)
    dropped = X.drop(columns="noise")
    plain = fitted(dropped, Y, binning=binning)
    assert_array_equal(plain.predict_proba(dropped), expected)
