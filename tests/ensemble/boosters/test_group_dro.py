"""Group DRO: weights of eras that follow their losses, and the attributes with them."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import ensemble, metrics
from sklearn.base import clone

from helpers.callbacks import Recorder
from helpers.criteria import CRITERIA
from helpers.data import make_data
from helpers.estimators import ours
from helpers.grids import from_1_9, on_grid
from helpers.trees import assert_same_model, assert_same_splits
from sklearn_era.effects import GroupDRO, Recency
from sklearn_era.ensemble import BinnedDataset
from sklearn_era.ensemble._boosters.era_weights import next_log_weights
from sklearn_era.inspection import split_statistics
from sklearn_era.model_files import load_model, save_model


def half(metric):
    """Half of a metric, as scikit-learn's losses have squared errors and deviances."""
    return lambda y, p, w: metric(y, p, sample_weight=w) / 2


def log_loss_of(labels):
    return lambda y, p, w: metrics.log_loss(y, p, sample_weight=w, labels=labels)


LOSSES = {
    "real": ({}, half(metrics.mean_squared_error)),
    "absolute": ({"loss": "absolute_error"},
                 lambda y, p, w: metrics.mean_absolute_error(y, p, sample_weight=w)),
    "quantile": ({"loss": "quantile", "quantile": 0.8}, lambda y, p, w:
                 metrics.mean_pinball_loss(y, p, sample_weight=w, alpha=0.8)),
    "count": ({"loss": "poisson"}, half(metrics.mean_poisson_deviance)),
    "positive": ({"loss": "gamma"}, half(metrics.mean_gamma_deviance)),
    "binary": ({}, log_loss_of(["down", "up"])),
    "multiclass": ({}, log_loss_of([0, 1, 2])),
}  # fmt: skip
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])
DRO = {"era_weighting": GroupDRO(step_size=0.5)}


def problem(target, **params):
    """A model, and X, y, weights and eras of very different sizes for it."""
    kind = target if target not in ("absolute", "quantile") else "real"
    X, y, weights, _ = make_data(kind)
    eras = np.random.default_rng(1).choice(4, y.size, p=[0.6, 0.2, 0.15, 0.05])
    model = ours("real" if kind in ("count", "positive") else kind)
    return model.set_params(**LOSSES[target][0], **params), X, y, weights, eras


def stages(model, X):
    """Predictions of a model before each of its iterations."""
    raw = [np.repeat(model._baseline_prediction, len(X), axis=0)]
    raw += list(model._staged_raw_predict(X))[:-1]
    if hasattr(model, "classes_"):
        return [model._loss.predict_proba(each) for each in raw]
    return [model._loss.link.inverse(each[:, 0]) for each in raw]


def weights_by_hand(model, X, y, sample_weight, eras, target, step_size):
    """``M q_j`` of algorithm 1, an iteration after the other, without logarithms."""
    w = np.ones(y.size) if sample_weight is None else sample_weight
    labels = np.unique(eras)
    q, rows = np.full(labels.size, 1 / labels.size), []
    for predicted in stages(model, X):
        for j, label in enumerate(labels):
            of_era = eras == label
            loss = LOSSES[target][1](y[of_era], predicted[of_era], w[of_era])
            q[j] *= np.exp(step_size * loss)
        q /= q.sum()
        rows.append(labels.size * q)
    return np.array(rows)


def table(model):
    """`era_weights_`, a row for each iteration."""
    return np.array(list(model.era_weights_.values())).T


def assert_by_hand(model, X, y, weights, eras, target="real"):
    by_hand = weights_by_hand(model, X, y, weights, eras, target, 0.5)
    assert_allclose(table(model), by_hand, rtol=1e-10)
    return by_hand


@on_grid("target weighted", list(LOSSES), [False, True], every=2)
def test_weights_are_those_of_the_algorithm(target, weighted):
    model, X, y, weights, eras = problem(target, **DRO)
    given = weights if weighted else None
    model.fit(X, y, given, eras=np.array(["a", "b", "c", "d"])[eras])
    assert list(model.era_weights_) == ["a", "b", "c", "d"]
    assert assert_by_hand(model, X, y, given, eras, target).std() > 0.01
    assert_allclose(table(model).mean(axis=1), 1)


@on_grid("target weighted", list(LOSSES), [False, True], every=2)
def test_each_tree_is_that_of_scikit_learn_with_such_weights(target, weighted):
    model, X, y, _, eras = problem(target, **DRO, max_bins=255)
    X = X.round(1)  # so few values that bins do not depend on weights
    weights = np.random.default_rng(2).uniform(0.5, 2, y.size)
    model.fit(X, y, weights if weighted else None, eras=eras)
    kind = getattr(ensemble, type(model).__name__)
    params = {name: model.get_params()[name] for name in kind().get_params()}
    theirs = kind(**params | {"warm_start": True, "max_iter": 1})
    base = weights if weighted else np.ones(y.size)
    theirs.fit(X, y, base)
    for n in range(1, model.n_iter_):  # the first has a baseline without such weights
        theirs._baseline_prediction = model._baseline_prediction
        theirs._predictors = model._predictors[:n]
        theirs.set_params(max_iter=n + 1).fit(X, y, base * table(model)[n, eras])
        trees = (each._predictors[n] for each in (model, theirs))
        assert_same_splits(*(SimpleNamespace(_predictors=[tree]) for tree in trees))


@on_grid("criterion target", CRITERIA, list(LOSSES), every=14)
def test_step_size_of_0_is_the_plain_fit(criterion, target):
    model, X, y, weights, eras = problem(target, **criterion)
    for given in (None, weights):
        plain = clone(model).fit(X, y, given, eras=eras)
        free = clone(model).set_params(era_weighting=GroupDRO(0))
        free.fit(X, y, given, eras=eras)
        assert_same_model(free, plain, X)
        assert np.array_equal(table(free), np.ones((free.n_iter_, 4)))
        assert hasattr(free, "_fitted_with_sw") == (given is not None)


@on_grid("scoring validation_eras", ["loss", "r2", None], ["last", None])
def test_early_stopping_weighs_rows_of_training_alone(scoring, validation_eras):
    X, y, weights, eras = make_data()
    model = ours(**DRO, early_stopping=True, scoring=scoring,
                 validation_eras=validation_eras, validation_fraction=0.3,
                 n_iter_no_change=5).fit(X, y, weights, eras=eras)  # fmt: skip
    if validation_eras is None:
        assert list(model.era_weights_) == [0, 1, 2, 3]
        assert table(model).std() > 0.01
        return
    assert list(model.era_weights_) == [0, 1]
    train = eras < 2
    rows = (X[train], y[train], weights[train], eras[train])
    by_hand = assert_by_hand(model, *rows)
    error = (y - model.predict(X)) ** 2 / 2
    factors = by_hand[-1][np.minimum(eras, 1)]
    if scoring == "loss":
        trained = -np.average(error[train], weights=(weights * factors)[train])
        held_out = -np.average(error[~train], weights=weights[~train])
    else:
        trained = model.score(X[train], y[train], weights[train])
        held_out = model.score(X[~train], y[~train], weights[~train])
    assert model.train_score_[-1] == pytest.approx(trained)
    assert model.validation_score_[-1] == pytest.approx(held_out)


@on_grid("target", list(LOSSES), every=2)
def test_warm_start_goes_on_with_the_weights(target):
    model, X, y, weights, eras = problem(target, **DRO, max_iter=10)
    straight = clone(model).fit(X, y, weights, eras=eras)
    model.set_params(max_iter=5, warm_start=True).fit(X, y, weights, eras=eras)
    first = table(model)
    model.set_params(max_iter=10).fit(X, y, weights, eras=eras)
    assert np.array_equal(table(model)[:5], first)
    assert_allclose(table(model), table(straight), rtol=1e-10)
    assert_same_splits(model, straight)
    model.set_params(max_iter=11)
    with pytest.raises(ValueError, match=r"^eras has 3 .* not the 4 whose weights"):
        model.fit(X, y, weights, eras=np.minimum(eras, 2))
    assert table(model).shape == (10, 4)
    # A step size of 0 leaves the weights where they are.
    model.set_params(era_weighting__step_size=0).fit(X, y, weights, eras=eras)
    assert np.array_equal(table(model)[10], table(model)[9])


@pytest.mark.filterwarnings("ignore:X makes other bins:UserWarning")
def test_warm_start_with_another_weighting_is_recorded():
    X, y, _, eras = make_data()
    model = ours(warm_start=True, max_iter=2).fit(X, y, eras=eras)
    model.set_params(**DRO, max_iter=4).fit(X, y, eras=eras)
    assert np.array_equal(table(model)[:2], np.ones((2, 4)))
    assert np.all(table(model)[2:] != 1)
    recorded = table(model)
    model.set_params(era_weighting="equal", max_iter=6).fit(X, y, eras=eras)
    assert np.array_equal(table(model)[:4], recorded)
    equal = table(ours(era_weighting="equal").fit(X, y, eras=eras))[0]
    assert np.array_equal(table(model)[4:], [equal, equal])
    model.set_params(max_iter=7).fit(X, y, eras=eras + 1)
    assert np.isnan(table(model)[:6]).all()
    assert np.isfinite(table(model)[6]).all()
    model.set_params(era_weighting="rows", max_iter=8).fit(X, y)
    assert not hasattr(model, "era_weights_")
    model.set_params(**DRO, warm_start=False).fit(X, y, eras=eras)
    assert table(model).shape == (8, 4)


@pytest.mark.parametrize("weighting", ["equal", Recency(half_life=1)])
def test_fixed_weights_are_recorded_too(weighting):
    X, y, weights, eras = make_data()
    days = np.datetime64("2024-01-01") + eras
    model = ours(era_weighting=weighting).fit(X, y, weights, eras=days)
    assert list(model.era_weights_) == sorted(set(days))
    factors = np.array([factor[0] for factor in model.era_weights_.values()])
    assert np.array_equal(table(model), np.tile(factors, (5, 1)))
    same = ours().fit(X, y, weights * factors[eras], eras=days)
    assert np.allclose(model.predict(X), same.predict(X), rtol=1e-6)
    # The eras that are trained on.
    model.set_params(early_stopping=True).fit(X, y, weights, eras=days)
    factors = factors[:3]
    assert np.array_equal(table(model), np.tile(factors, (model.n_iter_, 1)))


@pytest.mark.parametrize("model", [ours(), ours().fit([[0]], [0], eras=[0])])
def test_there_are_none_without_a_weighting_or_intercepts(model):
    with pytest.raises(AttributeError, match="has era_weights_ after a fit with a"):
        model.era_weights_  # noqa: B018
    with pytest.raises(AttributeError, match="after a fit with era_effects only"):
        model.era_intercepts_  # noqa: B018


def test_weights_that_are_given_stay_as_they_are():
    X, y, weights, eras = make_data()
    kept, given = weights.copy(), {"sample_weight": weights, "eras": eras}
    ours(**DRO).fit(X, y, **given)
    data = BinnedDataset.from_arrays(X, y, **given, max_bins=32)
    model = ours(**DRO).fit(data)
    assert_same_model(clone(model).fit(data), model, X)
    assert np.array_equal(weights, kept)


def test_eras_without_weight_and_alone():
    X, y, weights, eras = make_data()
    weights = np.where(eras == 2, 0, weights)
    model = ours(**DRO).fit(X, y, weights, eras=eras)
    assert np.array_equal(model.era_weights_[2], np.ones(5))
    kept = eras != 2
    rows = (each[kept] for each in (X, y, weights, eras))
    by_hand = weights_by_hand(model, *rows, "real", 0.5)
    assert_allclose(table(model)[:, [0, 1, 3]], by_hand, rtol=1e-10)
    alone = ours(**DRO).fit(X, y, eras=np.zeros(y.size))
    assert np.array_equal(alone.era_weights_[0.0], np.ones(5))
    assert alone.predict(X) == pytest.approx(ours().fit(X, y).predict(X))
    # Each row an era.
    X, y, eras = X[:60], y[:60], np.arange(60)
    single = ours(**DRO).fit(X, y, eras=eras)
    assert_by_hand(single, X, y, None, eras)


@on_grid("criterion", CRITERIA, every=3)
def test_weights_and_criteria_go_together(criterion):
    model, X, y, weights, eras = problem("real", **DRO, **criterion)
    model.set_params(min_samples_leaf=2).fit(X, y, weights, eras=eras)
    assert_by_hand(model, X, y, weights, eras)


def test_losses_are_those_after_a_step_of_the_intercepts():
    X, y, weights, eras = make_data()
    model = ours(**DRO, era_effects="intercept", max_iter=1)
    model.fit(X, y + eras, weights, eras=eras)
    start = np.average(y + eras, weights=weights)
    own = start + np.array(list(model.era_intercepts_.values()))
    assert np.ptp(own) > 1
    errors, of_eras = (y + eras - own[eras]) ** 2, [eras == j for j in range(4)]
    losses = [np.average(errors[i], weights=weights[i]) / 2 for i in of_eras]
    expected = np.exp(0.5 * np.array(losses))
    assert table(model)[0] == pytest.approx(4 * expected / expected.sum())
    # The intercepts' first step knows nothing of it.
    plain = ours(era_effects="intercept", max_iter=1)
    plain.fit(X, y + eras, weights, eras=eras)
    assert model.era_intercepts_ == pytest.approx(plain.era_intercepts_)
    # Nor does it hang on where a fit was broken off.
    model.set_params(max_iter=8)
    straight = clone(model).fit(X, y + eras, weights, eras=eras)
    parts = clone(model).set_params(max_iter=3, warm_start=True)
    parts.fit(X, y + eras, weights, eras=eras).set_params(max_iter=8)
    parts.fit(X, y + eras, weights, eras=eras)
    assert_allclose(table(parts), table(straight), rtol=1e-9)
    assert parts.era_intercepts_ == pytest.approx(straight.era_intercepts_)


def test_weights_survive_what_numbers_do_not():
    moved = next_log_weights(np.zeros(3), np.array([1e4, 0.0, -1e4]), np.ones(3, bool))
    assert np.exp(moved) == pytest.approx([3, 0, 0])
    # An era comes back, whose weight as a number was 0.
    back = next_log_weights(moved, [0.0, 1e4, 2e4], np.ones(3, bool))
    assert np.exp(back) == pytest.approx([1, 1, 1])
    X, y, _, eras = make_data()
    model = ours(era_weighting=GroupDRO(1e6)).fit(X, y, eras=eras)
    assert np.isfinite(model.predict(X)).all()
    assert table(model).max(axis=1) == pytest.approx(4)


@pytest.mark.parametrize(("step_size", "scale"), [(1e308, 1e3), (0.1, 1e180)])
def test_steps_too_large_for_numbers_are_refused(step_size, scale):
    X, y, _, eras = make_data()
    shown = str(step_size).replace("+", r"\+")
    message = rf"^GroupDRO\(step_size={shown}\) times the mean loss of era \d.* lower s"
    with pytest.raises(ValueError, match=message):
        ours(era_weighting=GroupDRO(step_size)).fit(X, scale * y, eras=eras)


@from_1_9
def test_copies_keep_the_weights_of_their_iterations(tmp_path):
    X, y, _, eras = make_data()
    recorder = Recorder()
    model = ours(**DRO).set_callbacks(recorder).fit(X, y, eras=eras)
    assert len(recorder.fitted) == 5
    for n, fitted in enumerate(recorder.fitted, start=1):
        assert np.array_equal(table(fitted), table(model)[:n])
    # And go on from there.
    third = recorder.fitted[2].set_params(warm_start=True).fit(X, y, eras=eras)
    assert_allclose(table(third), table(model), rtol=1e-10)
    path = tmp_path / "model.era"
    save_model(model, path)
    for copied in (load_model(path)[0], pickle.loads(pickle.dumps(model))):
        assert np.array_equal(table(copied), table(model))
    # Changing what is returned changes nothing in the model.
    model.era_weights_[0][:] = 0
    assert table(model)[0, 0] > 0


@pytest.mark.parametrize("target", ["real", "multiclass"])
@weighted_or_not
def test_split_statistics_are_those_of_the_weighted_rows(target, weighted):
    """Also where the steps before a warm start were others, as recorded."""
    model, X, y, weights, eras = problem(target, **DRO)
    given = weights if weighted else None
    once = model.fit(X, y, given, eras=eras)
    warm = clone(model).set_params(warm_start=True, max_iter=3)
    warm.fit(X, y, given, eras=eras)
    warm.set_params(max_iter=6, era_weighting=GroupDRO(0.0)).fit(X, y, given, eras=eras)
    for fitted in (once, warm):
        found = split_statistics(fitted, X, y, eras=eras, sample_weight=given)
        inner = found.depth > 0
        assert inner.sum() > 20
        gains = found.gain[inner], found.gain_in_fit[inner]
        assert_allclose(*gains, rtol=1e-5, atol=1e-9)
