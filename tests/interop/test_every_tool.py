"""Tools that do not take an estimator name what to pass; figures take each kind."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.inspection import PartialDependenceDisplay

from sklearn_era import ensemble, inspection
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.inspection import split_statistics
from sklearn_era.interop import to_lightgbm_text, to_sklearn
from sklearn_era.model_selection import EraSearchCV

RNG, ERAS = np.random.default_rng(0), np.repeat(np.arange(6), 50)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + RNG.normal(size=300)
CLASSES, SMALL = (Y > 0).astype(int), {"split_criterion": "era", "random_state": 0}
BOOSTER = ensemble.HistGradientBoostingRegressor(max_iter=4, **SMALL)
MODELS = {
    "booster": BOOSTER,
    "booster of classes": ensemble.HistGradientBoostingClassifier(max_iter=4, **SMALL),
    "forest": ensemble.EraForestRegressor(4, **SMALL),
    "forest of classes": ensemble.EraForestClassifier(4, **SMALL),
    "search": EraSearchCV(BOOSTER, {"max_leaf_nodes": [8, 31]}),
    "AutoEra": AutoEraRegressor(BOOSTER, members=["linear"], random_state=0),
}


@pytest.fixture(scope="module")
def fitted():
    return {
        name: model.fit(X, CLASSES if "classes" in name else Y, eras=ERAS)
        for name, model in MODELS.items()
    }


def to_onnx(model):
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn_era.interop import register_onnx_converters

    register_onnx_converters()
    skl2onnx.to_onnx(model, X[:1].astype("float32"))


def of_splits(function):
    return lambda model: function(model, X, Y, eras=ERAS)


INSIDE = "of EraSearchCV its best_estimator_, and of AutoEra"
NO_LINEAR = "^Member 'linear' of AutoEraRegressor, a LinearRegressor, cannot be conv"
NO_DATASET = "pass X, y and eras|BinnedDataset"
DATASET = ensemble.BinnedDataset.from_arrays(X, Y, eras=ERAS)
REFUSED = {
    ("search", "AutoEra"): {
        to_sklearn: f"{INSIDE}|{NO_LINEAR}", to_lightgbm_text: INSIDE,
        to_onnx: f"Search|{NO_LINEAR}", of_splits(split_statistics): INSIDE,
        of_splits(inspection.era_feature_importances): INSIDE,
        of_splits(inspection.SplitAgreementDisplay.from_estimator): INSIDE,
        lambda model: model.fit(DATASET): NO_DATASET,
        lambda model: model.fit(DATASET, Y, eras=ERAS): NO_DATASET,
    },
    ("forest of classes",): dict.fromkeys(
        (to_sklearn, to_lightgbm_text, to_onnx),
        "^An EraForestClassifier cannot be converted: its trees add up to proportions "
        ".* its method to_regressor",
    ),
}  # fmt: skip
CASES = [
    (name, use, message) for names, uses in REFUSED.items() for name in names
    for use, message in uses.items()
]  # fmt: skip


@pytest.mark.parametrize(("name", "use", "message"), CASES, ids=range(len(CASES)))
def test_a_tool_refuses_and_names_what_it_takes(name, use, message, fitted):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        use(fitted[name])


@pytest.mark.parametrize("name", MODELS)
def test_figures_of_any_estimator(name, fitted):
    y = CLASSES if "classes" in name else Y
    draw = inspection.EraScoreDisplay.from_estimator
    display = draw(fitted[name], X, y, eras=ERAS)
    assert np.isfinite(display.scores).all()
    draw = PartialDependenceDisplay.from_estimator
    drawn = draw(fitted[name], X, [(0, 1)], grid_resolution=3)
    assert np.ptp(drawn.pd_results[0]["average"]) > 0
    plt.close("all")
