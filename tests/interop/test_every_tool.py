"""Tools that do not take an estimator name what to pass; figures take each kind, and
all that reads tables takes those of each library.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_equal
from sklearn.base import clone, is_classifier
from sklearn.inspection import PartialDependenceDisplay

from helpers.grids import on_grid
from sklearn_era import calibration, causal, ensemble, environments, inspection
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.inspection import split_statistics
from sklearn_era.interop import to_lightgbm_text, to_sklearn
from sklearn_era.model_selection import EraSearchCV, holdout_curve
from sklearn_era.rules import RuleEnsembleClassifier

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


RULES = RuleEnsembleClassifier(3, variance_penalty=0.3)
FOLDS = {"cv": 3, "random_state": 0}
NAMED = ensemble.HistGradientBoostingRegressor(
    max_iter=3, monotonic_cst={"x0": 1}, categorical_features=["site"],
    feature_penalty={"x1": 0.2}, era_effects="intercept",
)  # fmt: skip


def predicts(model, **options):
    def fit(T, eras):
        y = CLASSES if is_classifier(model) else Y
        fitted = clone(model).fit(T, y, eras=eras, **options)
        p = fitted.predict_proba if is_classifier(model) else fitted.predict
        table = getattr(fitted, "rule_table", lambda *_, **_options: {})
        return p(T), dict(table(T, y, eras=eras))

    return fit


OF_TABLES = {
    **{name: predicts(model) for name, model in MODELS.items()},
    "names": predicts(NAMED), "rules": predicts(RULES, groups="site"),
    "twice": predicts(ensemble.JustTrainTwice(MODELS["booster of classes"])),
    "calibrated": predicts(
        calibration.EraCalibratedClassifier(MODELS["booster of classes"], cv=3)),
    "conformal": predicts(calibration.EraConformalRegressor(BOOSTER, cv=3)),
    "validation": lambda T, eras: clone(NAMED).fit(
        T, Y, eras=eras, X_val=T, y_val=Y).predict(T),
    "dataset": lambda T, eras: clone(BOOSTER).fit(
        ensemble.BinnedDataset.from_arrays(T, Y, eras=eras)).feature_names_in_,
    "support_match": lambda T, eras: inspection.support_match(
        T, eras=eras, X_holdout=T, categorical_features=["site"]),
    "permutation": lambda T, eras: inspection.era_permutation_importance(
        BOOSTER, T, Y, eras=eras, n_repeats=1, **FOLDS),
    "stability": lambda T, eras: inspection.era_stability(
        T, Y, eras=eras, estimator=BOOSTER, **FOLDS),
    "shap": lambda T, eras: inspection.shap_values(
        clone(BOOSTER).fit(T, Y, eras=eras), T),
    "splits": lambda T, eras: split_statistics(
        clone(BOOSTER).fit(T, Y, eras=eras), T, Y, eras=eras),
    "importances": lambda T, eras: inspection.era_feature_importances(
        clone(BOOSTER).fit(T, Y, eras=eras), T, Y, eras=eras),
    "domains": lambda T, eras: inspection.domain_classifier_auc(T, ERAS > 3, cv=2),
    "curve": lambda T, eras: holdout_curve(
        BOOSTER, T, Y, eras=eras, test_eras=[5], param_range=[1, 2]),
    "causes": lambda T, eras: causal.feature_penalties(T, CLASSES, ["x0", "site"]),
    "decorrelated": lambda T, eras: environments.decorrelated_partition(
        T, 2, random_state=0),
}  # fmt: skip
COLUMNS = {f"x{j}": X[:, j].round(1) for j in range(3)}
COLUMNS |= {"week": ERAS, "site": np.arange(300) % 3}


@on_grid("name eras", [*OF_TABLES], ["week", ["week"]], every=2)
def test_tables_of_each_library_give_the_same(name, eras):
    of_pandas, *others = [
        {**found} if hasattr(found, "keys") else found
        for make in (pd.DataFrame, pl.DataFrame, pa.table)
        for found in [OF_TABLES[name](make(COLUMNS), eras)]
    ]
    for found in others:
        assert_equal(found, of_pandas)
