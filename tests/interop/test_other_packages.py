"""Other packages predict what ``predict`` of our models does, or are known not to.

`docs/interoperability.md` documents it. Where a package is wrong in silence, on
scikit-learn's own models too, a test holds that it is: when it fails, there is a fixed
release to name.

Tests that need packages besides those of the suite are slow.
"""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import ensemble
from sklearn.base import is_classifier
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from helpers.estimators import fit_average
from helpers.trees import trees_of
from sklearn_era._optional import MissingPackageError
from sklearn_era.ensemble import EraForestClassifier, EraForestRegressor
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.interop import register_onnx_converters, to_lightgbm_text

PARAMETERS = {"max_iter": 20, "min_samples_leaf": 5, "random_state": 0}
ERA_PARAMETERS = PARAMETERS | {"split_criterion": "directional"}
N_SAMPLES = 600


def make_numeric_data():
    """X with missing values, the target of a regression, and eras."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 5)).astype(np.float32)
    noise = rng.normal(scale=0.3, size=N_SAMPLES)
    y = 2 * X[:, 0] + X[:, 1] ** 2 + noise
    X[rng.random(X.shape) < 0.1] = np.nan
    return X.astype(np.float64), y, np.arange(N_SAMPLES) % 4


def make_categorical_data():
    """X whose first feature is one of eight categories, a target, and eras."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 4)).astype(np.float32).astype(np.float64)
    X[:, 0] = rng.integers(8, size=N_SAMPLES)
    y = 5 * rng.normal(size=8)[X[:, 0].astype(int)] + X[:, 1]
    return X, y, rng.integers(4, size=N_SAMPLES)


def fit_numeric(kind, **parameters):
    """A model fitted with eras, and the X that it was fitted to."""
    X, y, _ = make_numeric_data()
    return fit_kind(kind, X, y, **parameters), X


def fit_kind(kind, X, y, **parameters):
    """A model fitted with eras."""
    eras, parameters = np.arange(X.shape[0]) % 4, ERA_PARAMETERS | parameters
    if kind == "regressor":
        model = Regressor(**parameters)
    elif kind == "forest":
        del parameters["max_iter"]
        model = EraForestRegressor(20, bootstrap="within_eras", **parameters)
    else:
        model = Classifier(**parameters)
        y = np.digitize(y, {"binary": [1], "multiclass": [0, 2]}[kind])
    model.fit(X, y, eras=eras)
    assert min(tree.get_n_leaf_nodes() for tree in trees_of(model)) > 1
    return model


def fit_classes():
    """A forest of classes, whose trees have proportions and not log-odds."""
    X, y, eras = make_numeric_data()
    return EraForestClassifier(6, random_state=0).fit(X, y > 1, eras=eras)


def fit_log_link(loss):
    X, y, eras = make_numeric_data()
    return Regressor(loss, **ERA_PARAMETERS).fit(X, np.exp(y / 4), eras=eras), X


BOOSTERS = ["regressor", "binary", "multiclass"]
AVERAGES = ["reals", "two", "three", "text"]
LOG_LINKS = pytest.mark.parametrize("loss", ["gamma", "poisson"])
KINDS = pytest.mark.parametrize("kind", [*BOOSTERS, "forest"])
CATEGORICAL_MODELS = pytest.mark.parametrize("kind", ["stock", "ours"])


def fit_categorical(kind, **parameters):
    X, y, eras = make_categorical_data()
    parameters = {"categorical_features": [0]} | parameters
    if kind == "stock":
        model = ensemble.HistGradientBoostingRegressor(**PARAMETERS | parameters)
        return model.fit(X, y), X
    return Regressor(**ERA_PARAMETERS | parameters).fit(X, y, eras=eras), X


def outputs(model, X):
    """The prediction to compare: probabilities of classes, or the value."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return model.predict(X)[:, np.newaxis]


@pytest.mark.slow
class TestShap:
    def explain(self, model, X):
        """Sum of the contributions to each raw prediction."""
        explainer = pytest.importorskip("shap").TreeExplainer(model)
        # check_additivity is what should notice wrong explanations.
        values = explainer.shap_values(X, check_additivity=True)
        return values.sum(axis=1) + explainer.expected_value

    @KINDS
    def test_contributions_add_up(self, kind):
        model, X = fit_numeric(kind)
        raw = model._raw_predict(X)
        assert_allclose(self.explain(model, X).reshape(raw.shape), raw, atol=1e-12)

    @CATEGORICAL_MODELS
    def test_categories_are_wrong_in_silence(self, kind):
        model, X = fit_categorical(kind)
        assert np.abs(self.explain(model, X) - model.predict(X)).max() > 1

    @pytest.mark.parametrize(("dtype", "is_right"), [("f4", True), ("f8", False)])
    def test_rows_are_rounded_with_a_background(self, dtype, is_right):
        shap = pytest.importorskip("shap")
        X = np.random.default_rng(0).normal(size=(400, 4)).astype(dtype).astype("f8")
        model = ensemble.HistGradientBoostingRegressor(**PARAMETERS).fit(X, X[:, 0])
        explainer = shap.TreeExplainer(model, X[:40])
        sums = explainer.shap_values(X, check_additivity=False).sum(axis=1)
        errors = np.abs(sums + explainer.expected_value - model.predict(X))
        assert (errors.max() < 1e-6) == is_right

    def test_classes_of_forests_are_refused(self):
        shap = pytest.importorskip("shap")
        error = shap.utils._exceptions.InvalidModelError
        with pytest.raises(error, match="not yet supp"):
            shap.TreeExplainer(fit_classes())


@pytest.mark.slow
class TestTreelite:
    def predict(self, model, X):
        treelite = pytest.importorskip("treelite")
        imported = treelite.sklearn.import_model(model)
        return treelite.gtil.predict(imported, X).reshape(X.shape[0], -1)

    @KINDS
    def test_numeric_features(self, kind):
        model, X = fit_numeric(kind)
        # Probabilities of several classes are normalised in single precision.
        expected = outputs(model, X)
        expected = expected[:, 1:] if expected.shape[1] == 2 else expected
        assert_allclose(self.predict(model, X), expected, atol=1e-6)

    @CATEGORICAL_MODELS
    def test_new_categories_are_wrong_in_silence_and_no_others(self, kind):
        """scikit-learn takes a category that it has not seen for a missing value."""
        model, X = fit_categorical(kind)
        assert_allclose(self.predict(model, X), outputs(model, X), atol=1e-12)
        X[:50, 0] = np.nan
        assert_allclose(self.predict(model, X), outputs(model, X), atol=1e-12)
        X[:, 0] = 99
        assert np.abs(self.predict(model, X) - outputs(model, X)).max() > 0.1

    @pytest.mark.filterwarnings("ignore:.* share a bin")
    def test_shared_bins_are_right_by_way_of_lightgbm_alone(self, tmp_path):
        model, X = fit_categorical("ours", max_bins=4)
        assert np.abs(self.predict(model, X) - outputs(model, X)).max() > 0.05
        X[::3, 0] = 99
        path = tmp_path / "model.txt"
        path.write_text(to_lightgbm_text(model))
        treelite = pytest.importorskip("treelite")
        imported = treelite.frontend.load_lightgbm_model(path)
        predicted = treelite.gtil.predict(imported, X).ravel()
        assert_allclose(predicted, model.predict(X), atol=1e-12)

    def test_classes_of_forests_are_refused(self):
        treelite = pytest.importorskip("treelite")
        with pytest.raises(treelite.TreeliteError, match="Not supported model type"):
            treelite.sklearn.import_model(fit_classes())

    @LOG_LINKS
    def test_log_link(self, loss):
        model, X = fit_log_link(loss)
        assert_allclose(self.predict(model, X), outputs(model, X), rtol=1e-12)


# skl2onnx hands protobuf booleans for integers: version 6 warns, and 7 refuses them.
STOCK_ONNX = pytest.mark.filterwarnings("ignore:Field onnx.Attr:DeprecationWarning")


@pytest.mark.slow
class TestOnnx:
    def predict(self, model, X):
        """Outputs of the graph that the model was converted to."""
        skl2onnx = pytest.importorskip("skl2onnx")
        onnxruntime = pytest.importorskip("onnxruntime")
        protobuf = pytest.importorskip("google.protobuf")
        register_onnx_converters()
        is_stock = type(model).__module__.startswith("sklearn.ensemble")
        if is_stock and int(protobuf.__version__.partition(".")[0]) > 6:
            with pytest.raises(ValueError, match="Unable to create node"):
                skl2onnx.to_onnx(model, X[:1])
            pytest.skip("skl2onnx does not work with protobuf 7")
        is_array = isinstance(X, np.ndarray)
        X = X.astype(np.float32) if is_array else X
        feeds = {"X": X} if is_array else {name: X[[name]].to_numpy() for name in X}
        options = {id(model): {"zipmap": False}} if is_classifier(model) else None
        graph = skl2onnx.to_onnx(model, X[:1], options=options).SerializeToString()
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(graph, providers=providers)
        return session.run(None, feeds)

    @pytest.mark.parametrize("kind", [*BOOSTERS, "forest", *AVERAGES])
    def test_numeric_features_and_averages(self, kind):
        model, X = fit_average(kind) if kind in AVERAGES else fit_numeric(kind)
        predicted = self.predict(model, X)
        assert_allclose(predicted[-1], outputs(model, X), atol=1e-5)
        assert len(predicted) == 1 + is_classifier(model)
        if is_classifier(model):
            assert (predicted[0] == model.predict(X)).all()

    def test_pipeline(self):
        X, y, eras = make_numeric_data()
        # Exact in single precision: rows at a threshold stay on their side.
        imputer = SimpleImputer(strategy="constant", fill_value=0.5)
        model = make_pipeline(imputer, Regressor(**ERA_PARAMETERS))
        model.fit(X, y, histgradientboostingregressor__eras=eras)
        assert_allclose(self.predict(model, X)[0], outputs(model, X), atol=1e-5)

    @pytest.mark.filterwarnings("ignore:.* share a bin")
    @KINDS
    def test_categories(self, kind):
        """Of numbers, also negative, missing, unknown, or sharing a bin."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3000, 4)).astype("f4").astype("f8")
        X[:, 1], X[:, 3] = rng.integers(0, 300, 3000), rng.integers(-3, 3, 3000) / 2
        X[rng.random(X.shape) < 0.1] = np.nan
        finite = np.nan_to_num(X, nan=9.0)
        y = rng.normal(size=300)[finite[:, 1].astype(int)] + 2 * (X[:, 3] == -0.5)
        model = fit_kind(kind, X, y + (finite[:, 3] == 9), categorical_features=[1, 3])
        trees = list(trees_of(model))
        by_category = np.concatenate([t.nodes["is_categorical"] == 1 for t in trees])
        goes_left = np.concatenate([t.nodes["missing_go_to_left"] for t in trees])
        assert {*goes_left[by_category]} == {0, 1}
        X[::5, 1], X[::7, 3] = rng.integers(-100, 400, 600), 0.75
        assert_allclose(self.predict(model, X)[-1], outputs(model, X), atol=1e-5)

    def test_text_is_encoded_in_a_pipeline(self):
        numbers, y, _ = make_numeric_data()
        X = pd.DataFrame(numbers[:, :2].astype("f4"), columns=["x", "z"])
        text = np.resize(["red", "green", "blue", "grey", None], len(X)).astype(object)
        options = {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}
        encode = OrdinalEncoder(dtype=np.float32, **options), ["colour"]
        columns = make_column_transformer(encode, remainder="passthrough")
        model = make_pipeline(columns, Regressor(categorical_features=[0]))
        model.fit(X.assign(colour=text), y + np.isin(text, ["red", None]))
        text[::3] = "new"
        expected = outputs(model, X.assign(colour=text))
        # Graphs have no missing text, but unknown text goes where it would.
        X["colour"] = pd.Series([each or "" for each in text], dtype=object)
        assert_allclose(self.predict(model, X)[0], expected, atol=1e-5)

    @STOCK_ONNX
    def test_registering_leaves_stock_estimators_alone(self):
        X, y, _ = make_numeric_data()
        stock = ensemble.HistGradientBoostingRegressor(**PARAMETERS).fit(X, y)
        assert_allclose(self.predict(stock, X)[0], outputs(stock, X), atol=1e-5)

    def test_other_categories_and_log_links_are_refused(self):
        X, y, _ = make_categorical_data()
        X[:, 0] += 0.1
        tenths = Regressor(categorical_features=[0], max_iter=2).fit(X, y)
        X[X[:, 0] == X[0, 0], 0] = 2**24 + 1
        X[:, 0] = np.floor(X[:, 0])
        large = Regressor(categorical_features=[0], max_iter=2).fit(X, y)
        one = Classifier(max_iter=2).fit(X, np.full(y.size, 7))
        frame = pd.DataFrame({"a": y, "colour": (y > 0).astype(str)})
        text = Regressor(max_iter=2).fit(frame.astype({"colour": "category"}), y)
        for (model, rows), message in (
            ((tenths, X), r"Feature 0 has categories such as 0\.1, and .* OrdinalEnc"),
            ((large, X), r"Feature 0 has categories such as 16777217\.0, "),
            ((text, X), r"Feature 'colour' has categories such as 'False'"),
            ((one, X), "of the single class 7; use to_sklearn"),
            (fit_log_link("gamma"), "log link of loss='gamma'"),
            (fit_log_link("poisson"), "log link of loss='poisson'"),
        ):
            with pytest.raises(NotImplementedError, match=message):
                self.predict(model, rows)
        with pytest.raises(NotFittedError):
            self.predict(Regressor(), X)

    @STOCK_ONNX
    def test_categories_of_stock_are_wrong_in_silence(self):
        model, X = fit_categorical("stock")
        assert np.abs(self.predict(model, X)[0] - outputs(model, X)).max() > 1

    @STOCK_ONNX
    @LOG_LINKS
    def test_log_link_of_stock_is_wrong_in_silence(self, loss):
        X, y, _ = make_numeric_data()
        model = ensemble.HistGradientBoostingRegressor(loss, **PARAMETERS)
        model.fit(X, np.exp(y / 4))
        predicted = self.predict(model, X)[0]
        assert_allclose(np.exp(predicted), outputs(model, X), rtol=1e-4)
        assert np.abs(predicted - outputs(model, X)).max() > 0.5


def test_missing_skl2onnx_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(MissingPackageError, match=r"sklearn-era\[interop\]"):
        register_onnx_converters()


@pytest.mark.parametrize("kind", BOOSTERS)
def test_partial_dependence_by_recursion(kind):
    """Equal to brute force, up to the baseline that recursion leaves out.

    Where features interact, recursion weighs rows by the path that they share with a
    grid point, and so the two methods differ by definition.
    """
    model, X = fit_numeric(kind, interaction_cst="no_interactions")
    keywords = {"custom_values": {0: np.linspace(-2, 2, 21)}}
    if is_classifier(model):
        keywords["response_method"] = "decision_function"
    recursion, brute = (
        partial_dependence(model, X, [0], method=method, **keywords)["average"]
        for method in ("recursion", "brute")
    )
    assert np.ptp(brute) > 1
    assert_allclose(recursion + model._baseline_prediction.T, brute, atol=1e-12)


@pytest.mark.parametrize("model", [
    Regressor(max_iter=9), Classifier(max_iter=9), EraForestRegressor(9),
    EraForestClassifier(9),
])  # fmt: skip
def test_partial_dependence_by_recursion_needs_columns_in_their_places(model):
    """scikit-learn tells it a column's place in X alone, which may not be the fit's."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    y = frame["b"] > 0 if is_classifier(model) else 3 * frame["b"]
    week = rng.integers(0, 4, 300).astype(float)
    named = frame.assign(week=week)[["week", "a", "b"]]

    def spread(X, column, method):
        options = {"method": method, "grid_resolution": 5}
        return np.ptp(partial_dependence(model, X, [column], **options)["average"])

    for eras in ("week", ["week"]):
        model.fit(named, y, eras=eras)
        for method in ("auto", "recursion"):
            with pytest.raises(ValueError, match="out of X; pass method='brute'"):
                spread(named, "a", method)
        assert spread(named, "b", "brute") > 4 * spread(named, "a", "brute")
    model.fit(frame, y, eras=week)  # where all columns are in their places
    for method in ("auto", "recursion", "brute"):
        assert spread(frame, "b", method) > 4 * spread(frame, "a", method)
