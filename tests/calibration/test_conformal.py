"""Intervals and sets against brute force, and as often right as they promise."""

import pickle
import re

import numpy as np
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.grids import on_grid, slow
from sklearn_era.calibration import (
    EraCalibratedClassifier,
    EraConformalClassifier,
    EraConformalRegressor,
    coverage_score,
)
from sklearn_era.inspection import EraScoreDisplay
from sklearn_era.model_files import ModelFileError, save_model
from sklearn_era.model_selection import EraSearchCV, EraWalkForwardSplit
from sklearn_era.preprocessing import EraStandardScaler


def make_rows(n_eras, n_rows=12, seed=0):
    """Rows of eras that have an intercept each, with labels in no order."""
    rng = np.random.default_rng(seed)
    eras = rng.permutation(np.repeat(np.arange(n_eras), n_rows))
    X = rng.normal(size=(eras.size, 2))
    y = X[:, 0] + rng.normal(size=n_eras)[eras] + 0.5 * rng.normal(size=eras.size)
    return X, y, eras


def thirds(y):
    return np.array(["a", "b", "c"])[np.searchsorted([-0.7, 0.7], y)]


def left_out(model, X, y, eras, weights, ordered):
    """Scores of rows left out with the masses of rows, and predictions of new rows."""
    folds = EraWalkForwardSplit(4) if ordered else GroupKFold(4)
    parts = list(folds.split(X, groups=eras))
    fits = [clone(model).fit(X[i], y[i], sample_weight=weights[i]) for i, _ in parts]
    n_eras, rows = np.unique(np.concatenate([eras[test] for _, test in parts])).size, []
    for fit, (_, test) in zip(fits, parts, strict=True):
        for i in test:
            own = weights[test][eras[test] == eras[i]].sum()
            rows.append((fit, i, weights[i] / own / (n_eras + 1)))
    whole = clone(model).fit(X, y, sample_weight=weights)
    return [(whole if ordered else fit, fit, i, mass) for fit, i, mass in rows]


each_model = pytest.mark.parametrize(("Model", "inner"), [
    (EraConformalRegressor, Ridge()), (EraConformalClassifier, LogisticRegression()),
    (EraCalibratedClassifier, LogisticRegression()),
])  # fmt: skip


@pytest.mark.parametrize("order", ["ordered", "unordered"])
@each_model
def test_progress_has_the_time_left_and_changes_nothing(Model, inner, order, capsys):
    X, y, eras = make_rows(9)
    y = y if Model is EraConformalRegressor else thirds(y)
    quiet = Model(inner, cv=3, era_order=order).fit(X, y, eras=eras)
    assert not capsys.readouterr().out
    model = clone(quiet).set_params(verbose=1, n_jobs=2).fit(X, y, eras=eras)
    first, *between, last = capsys.readouterr().out.splitlines()
    name, n = Model.__name__, len(quiet.estimators_) + 1
    told = rf"{name} 1/{n} fits: fold 1 of 3, to eras .* \(tests .*\); about \d+ s left"
    assert re.fullmatch(told, first)
    assert (len(between), last) == (n - 2, f"{name} {n}/{n} fits: all rows")
    np.testing.assert_array_equal(model.predict(X), quiet.predict(X))


def one_for_each_era(rows, eras, level):
    """The quantile of each era, with all of its mass."""
    found = []
    for era in dict.fromkeys(eras[i] for _, _, i, _ in rows):
        own = sorted((row for row in rows if eras[row[2]] == era), key=lambda x: x[1])
        total, below = sum(mass for *_, mass in own), 0.0
        for center, score, i, mass in own:
            below += mass
            if below >= level * total - 1e-9:
                found.append((center, score, i, total))
                break
    return found


def quantile(values, masses, level):
    order = np.argsort(values)
    is_enough = np.cumsum(masses[order]) >= level - 1e-9
    return values[order][is_enough][0] if is_enough.any() else np.inf


@on_grid(
    "ordered weighted share power", [False, True], [False, True], [None, 0.75],
    [0, 1.5], every=3,
)  # fmt: skip
def test_ends_and_sets_are_those_of_brute_force(ordered, weighted, share, power):
    X, y, eras = make_rows(11)
    y += 9.0
    new = make_rows(2, seed=1)[0]
    weights = np.random.default_rng(2).uniform(0, 2, y.size) ** weighted
    params = {"cv": 4, "era_order": "ordered" if ordered else "unordered"}
    of_fit = {"eras": eras, "sample_weight": weights if weighted else None}

    def parts(model, score):
        """Models, scores and masses of rows left out, or of eras."""
        rows = [
            (center, score(fit, i), i, mass)
            for center, fit, i, mass in left_out(model, X, y, eras, weights, ordered)
        ]
        every = [score for _, score, *_ in rows]
        if share is not None:
            rows = one_for_each_era(rows, eras, 0.7)
        fits, scores, _, masses = zip(*rows, strict=True)
        return fits, np.array(scores), np.array(masses), every

    model = EraConformalRegressor(Ridge(), power=power, **params).fit(X, y, **of_fit)
    ends = model.predict_interval(new, 0.7, share_of_eras=share)

    def score(fit, i):
        center = fit.predict(X[[i]])[0]
        return abs(y[i] - center) / center ** (power / 2)

    fits, scores, masses, every = parts(Ridge(), score)
    assert sorted(model.conformity_scores_) == pytest.approx(sorted(every))
    centers = np.array([fit.predict(new) for fit in fits])
    level = 0.7 if share is None else share
    for j in range(len(new)):
        errors = scores * centers[:, j] ** (power / 2)
        upper = quantile(centers[:, j] + errors, masses, level)
        lower = -quantile(errors - centers[:, j], masses, level)
        assert ends[j] == pytest.approx([lower, upper])

    y = thirds(0.3 * (y - 9) + 0.7 * X[:, 0])
    model = EraConformalClassifier(GaussianNB(), **params).fit(X, y, **of_fit)
    sets = model.predict_set(new, 0.7, share_of_eras=share)
    fits, scores, masses, _ = parts(
        GaussianNB(), lambda fit, i: 1 - fit.predict_proba(X[[i]])[0, "abc".find(y[i])]
    )
    own = np.array([1 - fit.predict_proba(new) for fit in fits])
    below = np.einsum("r,rjc->jc", masses, scores[:, None, None] < own)
    np.testing.assert_array_equal(sets, below < level - 1e-9)
    assert 0 < sets.mean() < 1


@pytest.mark.parametrize("share", [None, 0.8])
def test_new_eras_are_covered_as_often_as_promised(share):
    found = []
    other = FrozenEstimator(LinearRegression().fit(*make_rows(9, seed=999)[:2]))
    for seed in range(40):
        X, y, eras = make_rows(9, seed=2 * seed)
        model = EraConformalRegressor(other, era_order="unordered").fit(X, y, eras=eras)
        X, y, eras = make_rows(50, seed=2 * seed + 1)
        ends = model.predict_interval(X, 0.8, share_of_eras=share)
        is_in = (ends[:, 0] <= y) & (y <= ends[:, 1])
        of_eras = np.bincount(eras, is_in) / 12
        found.append(of_eras.mean() if share is None else np.mean(of_eras >= 0.8))
    error = np.std(found) / np.sqrt(len(found))
    # With a share, at most one era of ten more.
    assert 0.8 - 2 * error < np.mean(found) < (0.95 if share is None else 0.9)


def test_a_mass_that_just_reaches_the_level_is_enough():
    """Nine eras of 1/10 each, whose sum of eight in floats is below 0.8."""
    scores = np.arange(1.0, 10.0)
    frozen = FrozenEstimator(LinearRegression().fit([[0.0], [1.0]], [0.0, 0.0]))
    model = EraConformalRegressor(frozen, era_order="unordered")
    model.fit(np.zeros((9, 1)), scores, eras=np.arange(9))
    for level, end in ((0.7, 7), (0.75, 8), (0.8, 8), (0.9, 9)):
        assert model.predict_interval([[0.0]], level)[0] == pytest.approx([-end, end])
    eras = np.repeat(np.arange(9), 20)
    rows = scores[eras] + np.tile(np.arange(1, 21) / 200, 9)
    model.fit(np.zeros((180, 1)), rows, eras=eras)
    for level in (0.1, 0.5, 0.7, 0.9):  # of an era's rows; eight of nine eras
        found = model.predict_interval([[0.0]], level, share_of_eras=0.8)
        assert found[0, 1] == pytest.approx(8 + level / 10)


def test_too_few_eras_are_warned_of():
    X, y, eras = make_rows(8)
    regressor = EraConformalRegressor(Ridge(), era_order="unordered")
    regressor.fit(X, y, eras=eras)
    with pytest.warns(UserWarning, match="8 eras were left out, .* 0.9 needs 9: inter"):
        assert np.isinf(regressor.predict_interval(X)).all()
    assert np.isfinite(regressor.predict_interval(X, 8 / 9)).all()
    with pytest.warns(UserWarning, match="share of 0.95 needs 19"):
        assert np.isinf(regressor.predict_interval(X, 0.5, share_of_eras=0.95)).all()
    classifier = EraConformalClassifier(GaussianNB(), era_order="unordered")
    classifier.fit(X, thirds(y), eras=eras)
    with pytest.warns(UserWarning, match="sets have all classes.*at most 0.889"):
        assert classifier.predict_set(X).all()


def test_eras_that_are_tested_twice_count_once():
    X, y, eras = make_rows(12)
    twice = [*GroupKFold(3).split(X, groups=eras), *GroupKFold(4).split(X, groups=eras)]
    model = EraConformalRegressor(Ridge(), cv=twice).fit(X, y, eras=eras)
    assert model._masses.sum() == pytest.approx(12 / 13)


@pytest.mark.parametrize("order", ["ordered", "unordered", "groups"])
@each_model
def test_eras_without_weight_are_as_if_left_out(Model, inner, order):
    X, y, eras = make_rows(12)
    y = y if Model is EraConformalRegressor else thirds(y)
    weights, groups = (~np.isin(eras, [0, 1, 5])).astype(float), np.arange(y.size) % 4
    if order == "groups" and Model is not EraCalibratedClassifier:
        weights[groups == 3] = 0
        eras, order = pl.DataFrame({"era": eras, "group": groups.astype(str)}), "auto"
    found = []
    for rows in map(np.flatnonzero, (weights >= 0, weights > 0)):
        model = Model(inner, era_order=order.replace("groups", "unordered"))
        of_rows = {"eras": eras[rows], "sample_weight": weights[rows]}
        found.append(model.fit(X[rows], y[rows], **of_rows))
    for name in ("era_labels_", "_known_groups"):
        of_both = [list(getattr(model, name, [])) for model in found]
        assert of_both[0] == of_both[1]
    assert not {0, 1, 5} & {*found[0].era_labels_}
    method = {"EraConformalRegressor": "predict_interval"}.get(Model.__name__)
    one, other = (getattr(x, method or "predict_proba") for x in found)
    level = {"level": 0.6} if method else {}
    np.testing.assert_allclose(one(X, **level), other(X, **level))
    of_both = [getattr(x, "conformity_scores_", np.zeros(0)) for x in found]
    np.testing.assert_allclose(*of_both)


class Underflows(DummyRegressor):
    """A model of positive means whose exponentials are rounded to 0."""

    def __init__(self, loss="gamma"):
        super().__init__(strategy="constant", constant=0.0)
        self.loss = loss


class NeedsEras(Ridge):
    def fit(self, X, y, eras, sample_weight=None):
        self.n_eras_ = np.unique(eras).size
        return super().fit(X, y, sample_weight)


def test_eras_are_passed_on_also_by_name_and_by_routing():
    X, y, eras = make_rows(12)
    frame = pl.DataFrame(X, schema=["a", "b"]).with_columns(week=pl.Series(eras))
    model = EraConformalRegressor(NeedsEras(), cv=3).fit(frame, y, eras="week")
    assert (model.feature_names_in_.tolist(), model.n_features_in_) == (["a", "b"], 2)
    assert [x.n_eras_ for x in model.estimators_] == [3, 6, 9]
    assert model.estimator_.n_eras_ == 12
    new = frame.drop("week")
    found = pickle.loads(pickle.dumps(model)).predict_interval(new, 0.6)
    np.testing.assert_array_equal(found, model.predict_interval(new, 0.6))
    np.testing.assert_array_equal(model.predict(new), model.estimator_.predict(new))
    with config_context(enable_metadata_routing=True):
        inner = NeedsEras().set_fit_request(eras=True, sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = EraConformalRegressor(make_pipeline(scaler, inner), cv=3)
        routed.fit(X, y, eras=eras, sample_weight=np.ones(y.size))
    assert routed.estimators_[0][-1].n_eras_ == 3
    with pytest.raises(ModelFileError, match=r"ConformalRegressor holds .*NeedsEras"):
        save_model(model, "x.era")


@pytest.mark.parametrize(("call", "message"), [
    (lambda m, X, y, e: m.fit(X, y), "Regressor needs eras: pass eras="),
    (lambda m, X, y, e: m.fit(X, y[1:], eras=e), "y has 59 rows, but X has 60"),
    (lambda m, X, y, e: m.fit(X, y, eras=e[1:]), "eras has 59 labels"),
    (lambda m, X, y, e: m.fit(X, y, eras=e > 9), "holds 1 label.*three or more"),
    (lambda m, X, y, e: m.fit(X, y, eras=[*"ab"] * 30), "Labels are text such as"),
    (lambda m, X, y, e: m.set_params(cv="x").fit(X, y, eras=e), "'cv' parameter"),
    (lambda m, X, y, e: m.fit(X, y, eras=e).predict_interval(X, 90),
     "'level' parameter of EraConformalRegressor.predict_interval"),
    (lambda m, X, y, e: m.set_params(estimator=LogisticRegression()).fit(X, y, eras=e),
     "^estimator must be a regressor; got LogisticRegression"),
    (lambda m, X, y, e: m.set_params(power=1).fit(X, y, eras=e),
     "power=1 needs predictions above 0, and one is -.*: use a model of a positive"),
    (lambda m, X, y, e: m.set_params(estimator=Underflows(), power=2).fit(X, y, eras=e),
     "and one is 0: the model of means above 0 diverges.* smaller learning_rate"),
])  # fmt: skip
def test_refusals(call, message):
    X, y, eras = make_rows(5)
    with pytest.raises(ValueError, match=message):
        call(EraConformalRegressor(Ridge()), X, y, eras)


FOUR, ENDS = [0.0, 1.0, 2.0, 3.0], [[0, 1], [1, 1], [0, 1], [2, 4]]
SETS = np.array([[True, False, True], [False, True, True]])


def test_coverage_is_drawn_by_era():
    assert coverage_score(FOUR, ENDS) == 0.75
    for y in (FOUR, pl.DataFrame({"y": FOUR})):
        assert coverage_score(y, ENDS, sample_weight=[1, 1, 2, 0]) == 0.5
    for y in (["a", "a"], pl.DataFrame({"y": ["a", "a"]})):
        assert coverage_score(y, SETS, classes=["a", "b", "c"]) == 0.5
    of = {"eras": [1, 1, 2, 2], "metric": coverage_score}
    display = EraScoreDisplay.from_predictions(FOUR, ENDS, **of)
    assert (display.scores.tolist(), display.worst) == ([1.0, 0.5], 1)


@pytest.mark.parametrize(("y", "found", "given", "message"), [
    *(([0, 1], wrong, {}, "^y_pred must hold booleans, .* if classes h")
      for wrong in (SETS, SETS[:, :2], pl.DataFrame(SETS[:, :2]))),
    (FOUR, ENDS, {"classes": [1, 2]}, "^y_pred must hold booleans"),
    (["a", "b"], SETS, {"classes": [0, 1, 2]}, "as a, a text, and cl.* 0, a num"),
    *((FOUR, wrong, {}, r"y_pred must be of shape \(4, 2\); got")
      for wrong in ([[0, 1]], ENDS[0])),
    ([*FOUR[:3], np.nan], ENDS, {}, "^y_true has 1 missing .* first at row 3"),
    (FOUR, [[0, 1], [1, np.nan], *ENDS[2:]], {}, "^y_pred has 1 miss.* first at row 1"),
    *((FOUR, ENDS, {"sample_weight": weights}, "[Ww]eight|Negative")
      for weights in ([1, 2], [0, 0, 0, 0], [1, -1, 1, 1])),
])  # fmt: skip
def test_coverage_is_refused(y, found, given, message):
    with pytest.raises(ValueError, match=message):
        coverage_score(y, found, **given)


def test_the_power_is_that_of_the_fit():
    X, y, eras = make_rows(5)
    model = EraConformalRegressor(Ridge()).fit(X, y, eras=eras)
    before = model.predict_interval(X, 0.5)
    after = model.set_params(power=2).predict_interval(X, 0.5)
    np.testing.assert_array_equal(after, before)


def test_classes_that_a_fold_lacks_have_no_probability_there():
    X, y, eras = make_rows(10)
    z = np.where(eras == 0, "rare", np.where(y > 0, "b", "a"))
    model = EraConformalClassifier(LogisticRegression(), era_order="unordered", cv=10)
    model.fit(X, z, eras=eras)
    assert model.conformity_scores_.reshape(10, -1).min(axis=1).max() == 1
    assert model.predict_set(X, 0.8).shape == (120, 3)


def frozen(model, X, y, eras):
    with config_context(enable_metadata_routing=True):
        return FrozenEstimator(clone(model).fit(X, y, eras=eras))


def by_search(model, *_):
    scoring = "neg_mean_squared_error"
    return EraSearchCV(model, {"memory": [None]}, cv=2, scoring=scoring)


@pytest.mark.parametrize("era_order", ["ordered", "unordered"])
@pytest.mark.parametrize("wrap", [
    lambda model, *_: model, frozen,
    slow(lambda model, *_: TransformedTargetRegressor(model)), slow(by_search),
    slow(lambda model, *_: make_pipeline(StandardScaler(), model)),
])  # fmt: skip
def test_transformers_get_the_eras_of_rows(wrap, era_order):
    X, y, eras = make_rows(24)
    X[:, 0] += 5 * np.random.default_rng(1).normal(size=24)[eras]
    Z = EraStandardScaler(smooth=0).fit_transform(X, eras=eras)
    old, new = eras < 14, eras >= 14
    pipe = make_pipeline(EraStandardScaler(smooth=0), LinearRegression())
    of_fit = {"eras": eras[old]}
    model = EraConformalRegressor(wrap(pipe, X[old], y[old], eras[old]))
    plain = FrozenEstimator(LinearRegression().fit(Z[old], y[old]))
    by_hand = EraConformalRegressor(plain if wrap is frozen else plain.estimator)
    for one, rows in ((model, X), (by_hand, Z)):
        one.set_params(era_order=era_order).fit(rows[old], y[old], **of_fit)
    expected = by_hand.predict_interval(Z[new], 0.7)
    found = model.predict_interval(X[new], 0.7, eras=eras[new])
    np.testing.assert_allclose(found, expected)
    score = by_hand.score(Z[new], y[new])
    assert model.score(X[new], y[new], eras=eras[new]) == pytest.approx(score)
    frame = pl.DataFrame(X, schema=["a", "b"]).with_columns(week=pl.Series(eras))
    parts = [frame.filter(pl.Series(part)) for part in (old, new)]
    if wrap is not frozen:
        model.fit(parts[0], y[old], eras="week")
        np.testing.assert_allclose(model.predict_interval(parts[1], 0.7), expected)
        assert model.score(parts[1], y[new]) == pytest.approx(score)
    if era_order == "unordered":
        model = EraConformalClassifier(make_pipeline(pipe[0], GaussianNB()))
        by_hand = EraConformalClassifier(GaussianNB())
        for one, rows in ((model, X), (by_hand, Z)):
            one.fit(rows[old], thirds(y)[old], **of_fit)
        found = model.predict_set(X[new], 0.7, eras=eras[new])
        np.testing.assert_array_equal(found, by_hand.predict_set(Z[new], 0.7))
    model = EraConformalClassifier(GaussianNB()).fit(X, y > 0, eras=eras)
    with pytest.raises(ValueError, match="predict_proba of GaussianNB takes none"):
        model.predict_set(X, 0.5, eras=eras)


@pytest.mark.parametrize(("kind", "bad", "message"), [
    (EraConformalRegressor, np.nan, r"infinite .* in 3 row.*the first row 2 "),
    (EraConformalRegressor, np.inf, r"y is missing, infinite or .*\(inf\)"),
    (EraConformalClassifier, "bird", r"no class of the estimator in 3 row.*\(bird\)"),
    (EraConformalClassifier, "zebra", "no class of the estimator"),
    (EraConformalClassifier, None, r"^y has 3 missing .* row 2 \(None\): drop"),
    (EraCalibratedClassifier, "cow", "no class of the estimator"),
])  # fmt: skip
def test_targets_that_a_frozen_model_cannot_know_are_refused(kind, bad, message):
    X, y, eras = make_rows(6)
    model: object = LinearRegression()
    if kind is not EraConformalRegressor:
        model, y = GaussianNB(), thirds(y).astype(object)
    model = kind(FrozenEstimator(model.fit(X, y)))
    y[[2, 30, 31]] = bad
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, eras=eras)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e12])
@pytest.mark.parametrize("constant", [3.3, 100.3, -7.7, np.pi])
def test_targets_that_tie_with_an_end_are_covered(constant, scale):
    rng = np.random.default_rng(0)
    y, eras = rng.poisson(3, 1000) * scale, np.repeat(np.arange(20), 50)
    dummy = DummyRegressor(strategy="constant", constant=constant * scale)
    dummy = FrozenEstimator(dummy.fit(y[:, np.newaxis], y))
    model = EraConformalRegressor(dummy, era_order="unordered")
    model.fit(y[:, np.newaxis], y, eras=eras)
    ends = model.predict_interval([[0.0]], 0.8)[0]
    # In tenths, numbers are whole, and ties are exact.
    tenths = np.round(10 * np.abs(y / scale - constant), 3)
    end = quantile(tenths, np.full(1000, 1 / 1050), 0.8)
    is_in = (ends[0] <= y) & (y <= ends[1])
    np.testing.assert_array_equal(is_in, tenths <= end)
    assert np.ptp(ends) == pytest.approx(end * scale / 5, rel=1e-3)


class Column(ClassifierMixin, BaseEstimator):
    """The probability is the row's only value."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.hstack([1 - np.asarray(X), X])


def test_classes_that_tie_with_the_quantile_are_in_sets():
    X, eras = np.full((30, 1), 7 * 0.1), np.repeat(np.arange(10), 3)  # 0.7 + 1e-16
    model = FrozenEstimator(Column().fit(X, [0, 1] * 15))
    model = EraConformalClassifier(model, era_order="unordered")
    model.fit(X, np.ones(30, int), eras=eras)
    found = model.predict_set([[0.7], [0.7 - 1e-9], [0.71], [0.3]], 0.8)
    assert found.tolist() == [[0, 1], [0, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("era_order", ["ordered", "unordered"])
def test_ends_do_not_depend_on_how_far_the_furthest_are(era_order):
    X, y, eras = make_rows(30)
    dummy, found = DummyRegressor(strategy="median"), []
    for fill in (1e6, 1e20, 9.96921e36, 1e300):
        y[5] = fill
        model = EraConformalRegressor(dummy, era_order=era_order).fit(X, y, eras=eras)
        found.append(model.predict_interval(X[:1], 0.8)[0])
    np.testing.assert_allclose(found, found[:1] * 4, rtol=1e-12)
    assert np.ptp(found[0]) < 6


class Asking(LinearRegression):
    def __init__(self, horizon=1, group="new"):
        super().__init__()
        self.horizon, self.group = horizon, group


@pytest.mark.parametrize(("own", "expected"), [
    ({}, (2, "known")), ({"horizon": 3}, (3, "known")),
])  # fmt: skip
def test_a_model_that_asks_the_same_question_is_asked_it(own, expected):
    """An average for new groups would be too careful, or sure, of known ones."""
    rng = np.random.default_rng(0)
    week, shop = (x.ravel() for x in np.indices((12, 40)))
    X, y = rng.normal(size=(480, 2)), rng.normal(size=480)
    of = {"horizon": 2, "group": "known", "era_order": ("ordered", "unordered")}
    model = EraConformalRegressor(Asking(**own), cv=3, **of)
    model.fit(X, y, eras=pl.DataFrame({"week": week, "shop": shop}))
    for fitted in (model.estimator_, *model.estimators_):
        assert (fitted.horizon, fitted.group) == expected
    assert model.estimator.get_params() == Asking(**own).get_params()
