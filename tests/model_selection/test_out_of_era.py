"""Errors of models that are fitted to some eras and tested on others."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsClassifier

from helpers.grids import slow
from sklearn_era import calibration
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.calibration import EraCalibratedClassifier, EraConformalClassifier
from sklearn_era.ensemble import HistGradientBoostingRegressor
from sklearn_era.inspection import era_permutation_importance, era_stability
from sklearn_era.model_selection import EraSearchCV
from sklearn_era.preprocessing import EraTargetRegressor

rng, eras = np.random.default_rng(0), np.repeat(np.arange(12), 10)
X = rng.normal(size=(120, 2))
y = ((eras == 11) & (X[:, 0] > 0)).astype(int)
counts = np.where(eras >= 6, rng.poisson(2.0, 120), 0)
logistic = LogisticRegression()
poisson = HistGradientBoostingRegressor("poisson", max_iter=3)


class OddError(Exception):
    """An error that is made of two arguments."""

    def __init__(self, number, text):
        super().__init__(number, text)


class Failing(ClassifierMixin, BaseEstimator):
    """A classifier whose fit raises an error."""

    def __init__(self, error=None):
        self.error = error

    def fit(self, X, y):
        raise self.error

    def predict_proba(self, X):
        raise NotImplementedError


@pytest.mark.parametrize("weights", [None, (eras != 10) * 1.0])
@pytest.mark.parametrize("as_given", [
    lambda rows: np.isin(np.arange(120), rows), lambda rows: rows - 120, list,
    lambda rows: range(rows[0], rows[-1] + 1),
])  # fmt: skip
@pytest.mark.parametrize("model", [
    AutoEraRegressor(poisson, members=["leaves_4"]), EraSearchCV(poisson, {}),
    calibration.EraConformalRegressor(poisson), EraCalibratedClassifier(logistic),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_folds_are_masks_or_indices_of_either_sign(model, as_given, weights):
    y = rng.poisson(2.0, 120) if is_regressor(model) else eras % 2 ^ (X[:, 0] > 0)
    folds = [(np.arange(60), np.arange(100, 120))]
    given = [tuple(map(as_given, fold)) for fold in folds]
    models = [
        clone(model).set_params(cv=cv).fit(X, y, eras=eras, sample_weight=weights)
        for cv in (folds, given)
    ]
    expected, found = (one.era_labels_.tolist() for one in models)
    assert found == expected == ([10, 11] if weights is None else [11])
    expected, found = (one.predict(X) for one in models)
    assert_array_equal(found, expected)


@pytest.mark.parametrize(("call", "where"), [
    (lambda: EraCalibratedClassifier(logistic).fit(X, y, eras=eras),
     r"fold \d of 5, to eras 0, 2, 3, 4, 5, … \(tests 1, 6, 11\)"),
    (lambda: EraConformalClassifier(logistic).fit(X, y, eras=eras), "fold 1 of 5"),
    (lambda: calibration.EraConformalRegressor(poisson).fit(X, counts, eras=eras),
     r"fold 1 of 5, to eras 0, 1 \(tests 2, 3\): .*sum\(y\) > 0"),
    (lambda: era_permutation_importance(logistic, X, y, eras=eras), "fold . of 5"),
    (lambda: era_stability(X, y, eras=eras, estimator=logistic), "fold . of 5"),
    (lambda: EraSearchCV(Failing(ValueError("not today")), {}).fit(X, y, eras=eras),
     r"^The fit fails in fold 1 of 3, to eras 0, .* \(tests .*: not today"),
    (lambda: EraSearchCV(Failing(), {"error": [ValueError("no")]}, rule="best",
                         cv=GroupKFold(2)).fit(X, y, eras=eras),
     "^The fit fails in fold 1 of 2, to eras .*: no$"),
    slow(lambda: AutoEraRegressor(poisson).fit(X, counts, eras=eras),
         r"sum\(y\) > 0.*\(in fold 1 of 3, to eras 0, "),
])  # fmt: skip
def test_errors_name_the_fold_and_its_eras(call, where):
    with pytest.raises(ValueError, match=where):
        call()


@pytest.mark.parametrize("error", [
    KeyError("a"), TypeError("not today"), ValueError(), OddError(1, "not today"),
])  # fmt: skip
@pytest.mark.parametrize("n_jobs", [None, slow(2)])
def test_errors_of_one_text_keep_their_type(error, n_jobs):
    model = EraCalibratedClassifier(Failing(error), n_jobs=n_jobs)
    kind = type(error) if len(error.args) == 1 else ValueError
    with pytest.raises(kind, match=r"fold \d of 5") as caught:
        model.fit(X, eras % 2, eras=eras)
    assert type(pickle.loads(pickle.dumps(caught.value))) is kind


@pytest.mark.parametrize("model", [
    EraConformalClassifier(logistic), EraCalibratedClassifier(logistic),
    EraTargetRegressor(LinearRegression()),
])  # fmt: skip
def test_weights_that_a_fit_does_not_request(model):
    rows = {"X": X, "y": y, "eras": eras, "sample_weight": np.ones(120)}
    with config_context(enable_metadata_routing=True):
        message = r"^sample_weight: the fit of .* does not request sample_weight: set_f"
        with pytest.raises(ValueError, match=message):
            model.fit(**rows)
    with pytest.raises(ValueError, match=r"KNe.* takes no weights; leave sample_wei"):
        calibration.EraConformalClassifier(KNeighborsClassifier()).fit(**rows)
