"""Each tool with each kind of estimator: equal predictions, or a refusal that helps."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import PartialDependenceDisplay

from sklearn_era.auto import AutoEraRegressor
from sklearn_era.ensemble import (
    BinnedDataset,
    EraForestClassifier,
    EraForestRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn_era.inspection import (
    EraScoreDisplay,
    SplitAgreementDisplay,
    era_feature_importances,
    split_statistics,
)
from sklearn_era.interop import to_lightgbm_text, to_sklearn
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchCV

RNG = np.random.default_rng(0)
ERAS = np.repeat(np.arange(6), 50)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + RNG.normal(size=300)
CLASSES = (Y > 0).astype(int)
BOOSTER = {"max_iter": 4, "split_criterion": "era", "random_state": 0}
FOREST = {"n_estimators": 4, "split_criterion": "era", "random_state": 0}
MODELS = {
    "booster": HistGradientBoostingRegressor(**BOOSTER),
    "booster of classes": HistGradientBoostingClassifier(**BOOSTER),
    "forest": EraForestRegressor(**FOREST),
    "forest of classes": EraForestClassifier(**FOREST),
    "search": EraSearchCV(
        HistGradientBoostingRegressor(**BOOSTER), {"max_leaf_nodes": [8, 31]}
    ),
    "AutoEra": AutoEraRegressor(
        HistGradientBoostingRegressor(max_iter=4), random_state=0
    ),
}


@pytest.fixture(scope="module")
def fitted():
    return {
        name: model.fit(X, CLASSES if "classes" in name else Y, eras=ERAS)
        for name, model in MODELS.items()
    }


def raw(model):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def keep(model, folder):
    save_model(model, folder / "m.era")
    assert_array_equal(raw(load_model(folder / "m.era")[0]), raw(model))


def convert(model, _):
    assert_array_equal(raw(to_sklearn(model)), raw(model))


def write_text(model, _):
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_str=to_lightgbm_text(model))
    own = raw(model)
    assert_allclose(booster.predict(X), own[:, 1] if own.ndim == 2 else own, rtol=1e-12)


def write_onnx(model, _):
    skl2onnx = pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from sklearn_era.interop import register_onnx_converters

    register_onnx_converters()
    graph = skl2onnx.to_onnx(model, X[:1].astype("float32"))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: X.astype("float32")})[0]
    assert_allclose(found.ravel(), model.predict(X).ravel(), atol=1e-4)


def target_of(model):
    return CLASSES if hasattr(model, "classes_") else Y


def look_into_splits(model, _):
    y = target_of(model)
    assert len(split_statistics(model, X, y, eras=ERAS)["gain"]) > 0
    importances = era_feature_importances(model, X, y, eras=ERAS)
    assert np.asarray(importances["importances"]).shape[-1] == 3
    SplitAgreementDisplay.from_estimator(model, X, y, eras=ERAS)
    plt.close("all")


def draw(model, _):
    y = target_of(model)
    EraScoreDisplay.from_estimator(model, X, y, eras=ERAS)
    PartialDependenceDisplay.from_estimator(model, X, [(0, 1)], grid_resolution=3)
    plt.close("all")


def bin_once(model, _):
    y = target_of(model)
    dataset = BinnedDataset.from_arrays(X, y, eras=ERAS)
    if hasattr(model, "best_params_"):
        model.fit(dataset, y, eras=ERAS)
    assert_array_equal(raw(model.fit(dataset)), raw(model.fit(X, y, eras=ERAS)))


INSIDE = dict.fromkeys(
    ("search", "AutoEra"), "of EraSearchCV its best_estimator_, and of AutoEra"
)
CLASSES_OF_FORESTS = {
    "forest of classes": "^An EraForestClassifier cannot be converted: its trees add "
    "up to proportions .* its method to_regressor"
}
REFUSED = {
    convert: INSIDE | CLASSES_OF_FORESTS,
    write_text: INSIDE | CLASSES_OF_FORESTS,
    write_onnx: {"search": "Search", "AutoEra": "AutoEra"} | CLASSES_OF_FORESTS,
    look_into_splits: INSIDE,
    bin_once: dict.fromkeys(INSIDE, "pass X, y and eras|BinnedDataset"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "use", [keep, convert, write_text, write_onnx, look_into_splits, draw, bin_once]
)
def test_equal_or_refused(use, name, fitted, tmp_path):
    message = REFUSED.get(use, {}).get(name)
    if message is None:
        use(fitted[name], tmp_path)
        return
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        use(fitted[name], tmp_path)
