"""Targets that are missing or no numbers are refused by value, wherever a fit is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import ensemble
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.calibration import EraCalibratedClassifier, EraConformalRegressor
from sklearn_era.ensemble import (
    EraForestClassifier,
    EraForestRegressor,
    JustTrainTwice,
)
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.preprocessing import EraTargetEncoder, EraTargetRegressor
from sklearn_era.rules import RuleEnsembleClassifier

RNG, ERAS = np.random.default_rng(0), np.repeat(np.arange(6), 10)
X, Y = RNG.normal(size=(60, 2)), RNG.normal(size=60)
NAMES = np.where(X[:, 0] > 0, "cat", "dog").tolist()
DAYS = pd.date_range("2024-01-01", periods=60)
SMALL = {"max_iter": 2, "min_samples_leaf": 3}

REGRESSORS = [
    Regressor(**SMALL), EraForestRegressor(n_estimators=2),
    AutoEraRegressor(Regressor(**SMALL)), EraSearchCV(LinearRegression(), {}),
    EraConformalRegressor(LinearRegression()), EraTargetRegressor(LinearRegression()),
    EraTargetEncoder(target_type="continuous"),
]  # fmt: skip
CLASSIFIERS = [
    Classifier(**SMALL), EraForestClassifier(n_estimators=2),
    AutoEraClassifier(Classifier(**SMALL)), EraSearchCV(LogisticRegression(), {}),
    EraCalibratedClassifier(LogisticRegression()), RuleEnsembleClassifier(2),
    JustTrainTwice(Classifier(**SMALL)), EraTargetEncoder(),
]  # fmt: skip
FIRST = {  # of classes
    "None": [None, *NAMES[1:]], "NaN": [np.nan, *NAMES[1:]],
    "objects": np.array([None, *NAMES[1:]], dtype=object),
    "strings": pd.array([None, *NAMES[1:]], dtype="string"),
    "categories": pd.Categorical([None, *NAMES[1:]]),
    "series": pd.Series([pd.NA, *NAMES[1:]], dtype=object),
    "polars": pl.Series([None, *NAMES[1:]]),
}  # fmt: skip
HOLDS_DATES = "^y is not numeric: it holds dates or times, such as 2024-01-01"
NO_NUMBERS = {
    "text": (["n/a", *Y[1:]], "^y is not numeric: it holds 'n/a'"),
    "objects": (np.array(["n/a", *Y[1:]], object), "^y is not numeric: it holds 'n/a'"),
    "frame": (pd.DataFrame(["n/a", *Y[1:]]), "^y is not numeric: it holds 'n/a'"),
    "None": ([None, *Y[1:]], r"^y has 1 missing value\(s\), the first at row 0 \(None"),
    "dates": (DAYS.to_numpy(), HOLDS_DATES), "index": (DAYS, HOLDS_DATES),
    "series": (pd.Series(DAYS), HOLDS_DATES), "polars": (pl.Series(DAYS), HOLDS_DATES),
    "timestamps": ([*DAYS], HOLDS_DATES), "periods": (DAYS.to_period(), HOLDS_DATES),
    "days": ([x.date() for x in DAYS], HOLDS_DATES),
    "zone": (DAYS.tz_localize("UTC"), HOLDS_DATES),
    "durations": (DAYS - DAYS[0], "^y is not numeric: it holds dates or times, .* 0 "),
    "complex": (Y * 1j, "^y is not numeric: it holds complex numbers"),
}  # fmt: skip


@pytest.mark.parametrize(("y", "message"), NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda x: type(x).__name__)
def test_numbers_are_asked_for_where_a_target_has_none(model, y, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, eras=ERAS)


@pytest.mark.parametrize("y", FIRST.values(), ids=FIRST)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda x: type(x).__name__)
def test_a_missing_class_is_refused(model, y):
    message = r"^y has 1 missing value\(s\), the first at row 0 \((None|nan|<NA>)\): dr"
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, eras=ERAS)


def test_validation_targets_are_refused_by_their_name():
    for model, y, y_val in (
        (Regressor(), Y, [*DAYS]),
        (Classifier(), NAMES, FIRST["NaN"]),
    ):
        with pytest.raises(ValueError, match=r"^y_val (is not numeric|has 1 missing)"):
            model.fit(X, y, X_val=X, y_val=y_val)


def test_text_of_numbers_and_classes_of_dates_are_as_in_scikit_learn():
    for name, y in (
        ("Regressor", Y.astype(str)),
        ("Classifier", np.sort(DAYS[::2].repeat(2))),
    ):
        stock = getattr(ensemble, f"HistGradientBoosting{name}")(**SMALL)
        model = {"Regressor": Regressor, "Classifier": Classifier}[name](**SMALL)
        found = model.fit(X, y).predict(X)
        np.testing.assert_array_equal(found, stock.fit(X, y).predict(X))
