"""Eras reach ``fit`` through scikit-learn's meta-estimators, sliced as the rows are."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context, ensemble
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_selection import (
    RFECV,
    SelectFromModel,
    SequentialFeatureSelector,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RANSACRegressor, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import sklearn_era
from helpers.data import make_data
from helpers.estimators import ours
from helpers.trees import assert_same_trees
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import (
    EraCalibratedClassifier,
    EraConformalClassifier,
    EraConformalRegressor,
)
from sklearn_era.ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    JustTrainTwice,
)
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._parameter_table import PARAMETERS
from sklearn_era.inspection import (
    era_permutation_importance,
    era_stability,
    support_match,
)
from sklearn_era.model_selection import EraSearchCV, holdout_curve
from sklearn_era.preprocessing import (
    EraNeutralizer,
    EraRankTransformer,
    EraTargetEncoder,
    EraTargetRegressor,
)

ESTIMATORS = [Classifier, Regressor]


@pytest.fixture(params=[False, True], ids=["plain fit params", "metadata routing"])
def routing(request):
    with config_context(enable_metadata_routing=request.param):
        yield request.param


@pytest.fixture
def data():
    """X, y and eras in no order; the second feature's effect is another in each era."""
    X, y, _, eras = make_data(n_samples=300)
    return X, y, np.array(["jan", "feb", "mar", "apr"])[eras]


def make_regressor(**params):
    return ours(**{"split_criterion": "directional", "max_iter": 3} | params)


def assert_scores(search, candidates, splits, X, y, eras):
    """Compare with the scores of fits by hand to the rows of each fold."""
    for fold, (train, test) in enumerate(splits):
        rows = X[train], y[train]
        fits = (make_regressor(**x).fit(*rows, eras=eras[train]) for x in candidates)
        scores = [fitted.score(X[test], y[test]) for fitted in fits]
        assert_array_equal(search.cv_results_[f"split{fold}_test_score"], scores)


def test_pipeline(data, routing):
    X, y, eras = data
    pipeline = Pipeline([("scale", StandardScaler()), ("model", make_regressor())])
    pipeline.fit(X, y, **{"eras" if routing else "model__eras": eras})
    X_scaled = StandardScaler().fit_transform(X)
    assert_same_trees(pipeline[-1], make_regressor().fit(X_scaled, y, eras=eras))
    other = make_regressor().fit(X_scaled, y, eras=np.roll(eras, 1))  # eras matter
    assert not np.array_equal(pipeline.predict(X), other.predict(X_scaled))


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_grid_search(data, routing, in_pipeline):
    X, y, eras = data
    estimator, prefix = make_regressor(), ""
    if in_pipeline:
        estimator = Pipeline([("model", estimator)])
        prefix = "model__"
    criteria = ["gain", "directional"]
    grid = {f"{prefix}split_criterion": criteria}
    search = GridSearchCV(estimator, grid, cv=KFold(3))
    search.fit(X, y, **{"eras" if routing else f"{prefix}eras": eras})
    candidates = [{"split_criterion": criterion} for criterion in criteria]
    assert_scores(search, candidates, KFold(3).split(X), X, y, eras)
    best = search.best_estimator_[-1] if in_pipeline else search.best_estimator_
    assert_same_trees(best, clone(best).fit(X, y, eras=eras))


def test_bagging_draws_eras_with_rows(data):
    X, y, eras = data
    bagging = BaggingRegressor(make_regressor(), n_estimators=3, random_state=0)
    with config_context(enable_metadata_routing=True):
        bagging.fit(X, y, eras=eras)
    draws = bagging.estimators_samples_
    for model, rows in zip(bagging.estimators_, draws, strict=True):
        assert_same_trees(model, clone(model).fit(X[rows], y[rows], eras=eras[rows]))


class Noting(Regressor):
    """Notes whether each fit got the eras of its rows."""

    def fit(self, X, y=None, sample_weight=None, *, eras=None):
        FITS.append(eras is not None and len(eras) == len(y))
        return super().fit(X, y, sample_weight, eras=eras)


FITS = []
NOTING = Noting(max_iter=1)
ESTIMATOR = [("model", NOTING)]
OF_OUTPUTS = (RegressorChain, MultiOutputRegressor)


@pytest.mark.parametrize("meta", [
    StackingRegressor(ESTIMATOR, final_estimator=NOTING), VotingRegressor(ESTIMATOR),
    RegressorChain(NOTING), MultiOutputRegressor(NOTING), RFECV(NOTING, cv=2),
    SequentialFeatureSelector(NOTING, n_features_to_select=1, cv=2),
    RANSACRegressor(NOTING, min_samples=200), TransformedTargetRegressor(NOTING),
], ids=lambda meta: type(meta).__name__)  # fmt: skip
def test_nearly_all_meta_estimators_pass_eras(data, meta):
    X, y, eras = data
    y = np.column_stack([y, y]) if isinstance(meta, OF_OUTPUTS) else y
    FITS.clear()
    with config_context(enable_metadata_routing=True):
        meta.fit(np.nan_to_num(X), y, eras=eras)
    assert FITS
    assert all(FITS)


@pytest.mark.parametrize(("meta", "message"), [
    (StackingRegressor(ESTIMATOR), "RidgeCV.fit got unexpected .*eras"),
    (AdaBoostRegressor(NOTING), "unexpected keyword argument 'eras'"),
], ids=["stacking", "boosting"])  # fmt: skip
def test_some_meta_estimators_refuse_eras(data, meta, message):
    X, y, eras = data
    refused = pytest.raises(TypeError, match=message)
    with config_context(enable_metadata_routing=True), refused:
        meta.fit(X, y, eras=eras)


def test_eras_are_refused_where_the_request_was_withdrawn(data):
    X, y, eras = data
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(make_regressor().set_fit_request(eras=False))
        with pytest.raises(TypeError, match="eras"):
            pipeline.fit(X, y, eras=eras)


REGRESSOR = EraForestRegressor(2, random_state=0)
CLASSIFIER = EraForestClassifier(2, random_state=0)


@pytest.mark.parametrize("meta", [
    EraTargetRegressor(REGRESSOR), EraSearchCV(REGRESSOR, {}, cv=2),
    EraSearchCV(CLASSIFIER, {}, cv=2), EraConformalRegressor(REGRESSOR),
    EraConformalClassifier(CLASSIFIER), EraCalibratedClassifier(CLASSIFIER),
    JustTrainTwice(CLASSIFIER),
], ids=lambda meta: type(meta).__name__)  # fmt: skip
def test_models_around_forests_hand_them_no_eras(meta):
    X, y, _, eras = make_data(n_samples=300)
    y = y > np.median(y) if is_classifier(meta) else y
    model = clone(meta).fit(X, y, eras=eras)
    predicted, score = model.predict(X, eras=eras), model.score(X, y, eras=eras)
    named = pd.DataFrame(X).add_prefix("x").assign(week=eras)
    model = clone(meta).fit(named, y, eras="week")
    assert_array_equal(model.predict(named, eras="week"), predicted)
    assert model.score(named, y, eras="week") == score


@pytest.mark.parametrize("forest", [REGRESSOR, CLASSIFIER])
def test_forests_predict_behind_transformers_by_era(forest, routing):
    X, y, _, eras = make_data(n_samples=300)
    y = y > np.median(y) if is_classifier(forest) else y
    method = "predict_proba" if is_classifier(forest) else "predict"
    pipeline = make_pipeline(EraRankTransformer(), clone(forest))
    search = EraSearchCV(pipeline, {}, cv=2, error_score="raise").fit(X, y, eras=eras)
    ranked = EraRankTransformer().fit_transform(X, eras=eras)
    best = search.best_estimator_
    expected = getattr(best[-1], method)(ranked)
    assert_array_equal(getattr(search, method)(X, eras=eras), expected)
    if routing:
        assert_array_equal(getattr(best, method)(X, eras=eras), expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters(estimator):
    stock, model = getattr(ensemble, estimator.__name__)(), estimator()
    defaults = {name: row.default for name, row in PARAMETERS.items()}
    assert model.get_params() == defaults | stock.get_params()
    text = f"{estimator.__name__}(split_criterion='era')"
    assert repr(estimator(split_criterion="era")) == text
    assert isinstance(model, type(stock))
    assert is_classifier(model) != is_regressor(model) == (estimator is Regressor)


@pytest.mark.parametrize(("package", "category"), [
    (sklearn, InconsistentVersionWarning), (sklearn_era, UserWarning),
], ids=["sklearn", "sklearn_era"])  # fmt: skip
def test_pickle_of_another_version_warns(package, category, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(package, "__version__", "0.0.7")
        written = pickle.dumps(Regressor())
    with pytest.warns(category, match=r"0\.0\.7") as caught:
        model = pickle.loads(written)
    assert len(caught) == 1
    assert not any("version" in name for name in vars(model))


def test_pickle_of_the_stock_state_warns():
    """A state without versions is of unknown origin."""
    stock = ensemble.HistGradientBoostingRegressor()
    model = Regressor.__new__(Regressor)
    with pytest.warns() as caught:
        model.__setstate__(dict(vars(stock)))
    categories = {type(warning.message) for warning in caught}
    assert categories == {InconsistentVersionWarning, UserWarning}


@pytest.mark.parametrize("split_criterion", ["gain", "directional"])
def test_importances_are_shares_of_the_gain_by_the_columns_of_x(data, split_criterion):
    X, y, eras = data
    X = np.column_stack([X, eras == "jan"]).astype(float)  # which fits take first
    params = {"categorical_features": [X.shape[1] - 1], "max_iter": 5}
    plain = make_regressor(split_criterion=split_criterion, **params)
    plain.fit(X, y, eras=eras)
    gains = np.zeros(X.shape[1])
    for (tree,) in plain._predictors:
        for node in tree.nodes[tree.nodes["is_leaf"] == 0]:
            # The trees' first feature is the categorical one.
            gains[node["feature_idx"] - 1] += max(node["gain"], 0.0)
    assert_allclose(plain.feature_importances_, gains / gains.sum())
    selected = SelectFromModel(plain, prefit=True, threshold=-np.inf, max_features=1)
    assert selected.get_support().argmax() == gains.argmax()
    constant = make_regressor(split_criterion="gain", max_iter=1)
    assert not hasattr(constant, "feature_importances_")
    constant.fit(X[:8], y[:8])  # too few rows for a split
    assert_array_equal(constant.feature_importances_, np.zeros(X.shape[1]))


PLAIN, SECOND = Regressor(max_iter=2), Regressor(max_iter=2, feature_penalty={1: 1.0})
GRID = {"feature_penalty": [{1: 1.0}]}


def choose(columns):
    scaler = ColumnTransformer([("scaler", StandardScaler(), columns)])
    return EraSearchCV(make_pipeline(scaler, Ridge()), {}, cv=2)


@pytest.mark.parametrize("use", [
    EraSearchCV(PLAIN, GRID, cv=2), EraSearchCV(PLAIN, [{}, GRID], cv=2),
    EraSearchCV(make_pipeline(SECOND), {"histgradientboostingregressor": [PLAIN]}),
    EraSearchCV(make_pipeline(PLAIN), {"histgradientboostingregressor": [SECOND]}),
    EraConformalRegressor(GridSearchCV(PLAIN, GRID)), EraTargetRegressor(SECOND),
    AutoEraRegressor(PLAIN, members=["leaves_4", ("own", make_pipeline(SECOND))]),
    choose([1]), choose(2), choose(slice(1, None)), choose([False, True, True]),
    EraNeutralizer([1]), EraNeutralizer((2,)),
    EraTargetEncoder(categorical_features=["a"], relative=[2]),
    lambda **rows: era_permutation_importance(SECOND, **rows),
    lambda **rows: era_stability(estimator=SECOND, **rows),
    lambda X, y, eras: support_match(X, eras=eras, categorical_features=[1]),
    lambda **rows: holdout_curve(SECOND, test_eras=[5], **rows),
    lambda **rows: holdout_curve(
        PLAIN, test_eras=[5], param_name="feature_penalty", param_range=[{1: 1.0}],
        **rows,
    ),
])  # fmt: skip
def test_places_of_columns_that_eras_move_are_refused(use):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    X.insert(0, "week", np.arange(60) // 10)
    with pytest.raises(ValueError, match="counts columns of X, and eras='week' takes"):
        getattr(use, "fit", use)(X=X, y=X["a"], eras="week")


def test_places_that_eras_do_not_move_are_taken():
    """Places from the end, names, behind other columns, and those of a fitted model."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y, week = X["a"], np.arange(60) // 10
    last, first = X.assign(week=week), X.assign(week=week)[["week", "a", "b"]]
    for model, rows in [
        (choose([-1]), first), (choose(["b"]), first), (choose(slice("a", "b")), first),
        (choose([1]), last), (EraNeutralizer([1]), last),
        (EraConformalRegressor(FrozenEstimator(clone(SECOND).fit(X, y))), first),
    ]:  # fmt: skip
        model.fit(rows, y, eras="week")
    with pytest.raises(ValueError, match="counts columns of X"):
        choose([-1]).fit(last, y, eras="week")
