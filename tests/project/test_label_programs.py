"""Programs over labels and columns of any type: the answers are those of integers."""

import functools
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline

from helpers import era_labels
from helpers.era_labels import AHEAD, COLUMNS, KINDS, SAME
from helpers.misuse import BOOSTERS, ORDERED, SMALL, make_estimators, run_a_few
from sklearn_era import calibration, preprocessing
from sklearn_era._era_labels import kind_of
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.effects import Intercepts
from sklearn_era.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn_era.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn_era.ensemble._boosters import level_forecast
from sklearn_era.model_files import load_model, save_model
from sklearn_era.model_selection import EraSearchCV

RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.repeat(np.arange(AHEAD), 8))
LEVELS = np.cumsum(1 + RNG.normal(size=AHEAD) / 4)
X = RNG.integers(0, 9, (CODES.size, 2)).astype(np.float64)
Y = X[:, 0] / 2 + LEVELS[CODES] + RNG.normal(size=CODES.size)
LEVEL = SMALL | ORDERED | {"era_effects": Intercepts(forecast="auto")}
FOLDS = {"cv": 3, **ORDERED}
scaled = preprocessing.EraStandardScaler(unseen="train")
pipeline = make_pipeline(scaled, Regressor(**SMALL))
WITH_ERAS = [
    Regressor(**LEVEL), Classifier(**LEVEL), scaled,
    AutoEraRegressor(Regressor(**SMALL), members=["level"], **FOLDS, random_state=0),
    EraSearchCV(Regressor(**LEVEL), {"max_leaf_nodes": [3, 4]}, rule="best", **FOLDS),
    calibration.EraCalibratedClassifier(Classifier(**SMALL), **FOLDS),
    calibration.EraConformalRegressor(pipeline, **FOLDS),
    calibration.EraConformalClassifier(Classifier(**LEVEL), **FOLDS),
    preprocessing.EraTargetRegressor(Regressor(**SMALL)),
]  # fmt: skip
NAMES = ["group_dro", "forest_regressor", "forest_classifier", "rules"]
ESTIMATORS = WITH_ERAS + [make_estimators()[name] for name in NAMES]
LEVELED = {"predict_interval": {"level": 0.6}, "predict_set": {"level": 0.6}}
METHODS = ("predict", "predict_proba", "decision_function", "transform", *LEVELED)
each_kind = st.sampled_from(sorted(KINDS))
is_fitted = precondition(lambda self: self.model is not None)
fit_level = level_forecast.fit_level


def is_kind(name):
    return {kind_of(label) for label in era_labels.plain(KINDS[name](np.arange(3)))}


class Labels(RuleBasedStateMachine):
    """An estimator, and its twin that gets integers and float64."""

    model = None

    def _given(self, data, rows, kind=None):
        """Rows and labels in a random type each, these perhaps as a column."""
        kind = kind or data.draw(st.sampled_from(self.kinds), label="labels")
        columns, name = (
            data.draw(st.sampled_from(sorted(types)), label="type")
            for types in (COLUMNS, era_labels.TYPES)
        )
        labels = era_labels.as_type(name, KINDS[kind](CODES[rows]))
        given = COLUMNS[columns](X[rows]), labels
        if hasattr(self.model, "rule_table") or data.draw(st.booleans()):
            return given  # rules take no names of columns
        frame = era_labels.with_column(*given)
        return given if frame is None else (frame, "era")

    def _fit(self, data, n_eras, method="fit", change=0):
        rows = np.flatnonzero(n_eras > CODES)
        y, is_new = Y[rows], CODES[rows] >= self.n_known
        y = y > LEVELS[CODES[rows]] + 2 if is_classifier(self.model) else y
        y, (given, eras) = y + change * is_new, self._given(data, rows)
        getattr(self.twin, method)(X[rows], y, eras=CODES[rows])
        getattr(self.model, method)(given, y, eras=eras)
        self.n_known = n_eras

    @rule(
        model=st.sampled_from(ESTIMATORS), kind=each_kind, n_known=st.integers(7, 10),
        data=st.data())  # fmt: skip
    def fit(self, model, kind, n_known, data):
        self.methods = [name for name in METHODS if hasattr(model, name)]
        self.takes_eras, self.n_known = model in WITH_ERAS, n_known
        self.model, self.twin = clone(model), clone(model)
        self.kinds = next((kinds for kinds in SAME if kind in kinds), [kind])
        self._fit(data, n_known)

    @is_fitted
    @rule(data=st.data(), n_batches=st.integers(1, 3))
    def ask(self, data, n_batches):
        rows = st.lists(st.integers(0, CODES.size - 1), min_size=3, max_size=20)
        batches = np.array_split(data.draw(rows), n_batches)
        given = [self._given(data, rows) for rows in batches]
        for method in self.methods:
            more, rows = LEVELED.get(method, {}), np.concatenate(batches)
            known = {"eras": CODES[rows]} if self.takes_eras else {}
            expected, found = getattr(self.twin, method)(X[rows], **more, **known), []
            for X_given, eras in given:
                is_asked = self.takes_eras or isinstance(eras, str)
                known = {"eras": eras} if is_asked else {}
                found.append(getattr(self.model, method)(X_given, **more, **known))
            tolerance = 1e-10 * (n_batches > 1)
            np.testing.assert_allclose(np.concatenate(found), expected, tolerance)

    @precondition(lambda self: self.model is not None and self.takes_eras)
    @rule(data=st.data(), kind=each_kind)
    def ask_for_another_kind(self, data, kind):
        if is_kind(kind) != is_kind(self.kinds[0]):
            given, eras = self._given(data, np.arange(5), kind)
            calls = [getattr(self.model, name) for name in self.methods]
            if hasattr(self.model, "update"):
                calls.append(functools.partial(self.model.update, y=Y[:5]))
            for call in calls:
                with pytest.raises(ValueError, match=r"^eras holds .* of type .* but"):
                    call(given, eras=eras)

    @is_fitted
    @rule(is_file=st.booleans())
    def send_through(self, is_file):
        if is_file and "Pipeline" not in repr(self.model):
            save_model(self.model, self.path)
            self.model = load_model(self.path)[0]
        else:
            self.model = pickle.loads(pickle.dumps(self.model))

    @precondition(lambda self: isinstance(self.model, BOOSTERS))
    @rule(data=st.data())
    def warm_start(self, data):
        for model in (self.model, self.twin):
            model.set_params(warm_start=True, max_iter=model.n_iter_ + 1)
        self._fit(data, self.n_known)

    @precondition(lambda self: hasattr(self.model, "update"))
    @rule(data=st.data(), n_more=st.integers(1, 2), change=st.sampled_from([0, 9]))
    def update(self, data, n_more, change):
        if self.n_known + n_more <= AHEAD:
            self._fit(data, self.n_known + n_more, "update", change)
            logs = (model.update_log_[-1] for model in (self.model, self.twin))
            assert next(logs)["refit"] is next(logs)["refit"]


@pytest.mark.filterwarnings("ignore")
def test_labels_and_columns_of_any_type(monkeypatch, tmp_path):
    cached = functools.cache(
        lambda *columns: fit_level(level_forecast.Series(*map(np.array, columns)))
    )  # most of the time of a fit, of a few series
    faster = lambda series: cached(*map(tuple, series))  # noqa: E731
    monkeypatch.setattr(level_forecast, "fit_level", faster)
    run_a_few(type("Labels", (Labels,), {"path": tmp_path / "model.era"}), n_steps=8)
