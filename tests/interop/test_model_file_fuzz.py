"""Forged and damaged model files: refused, or harmless to predict with.

``FUZZ_SEEDS=400 pytest --slow`` forges 20,000 files.
"""

import os
import warnings
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from sklearn.base import is_classifier

from helpers.data import make_data
from helpers.estimators import ours
from helpers.grids import slow
from helpers.model_files import MODEL, Forgery
from sklearn_era import ensemble, preprocessing
from sklearn_era.auto import AutoEraClassifier, AutoEraRegressor
from sklearn_era.auto._linear import LinearClassifier, LinearRegressor
from sklearn_era.model_files import ModelFileError, load_model, save_model
from sklearn_era.model_selection import EraSearchCV, EraWalkForwardSplit
from sklearn_era.rules import RuleEnsembleClassifier

N_CASES = 50  # of each seed
N_SEEDS = int(os.environ.get("FUZZ_SEEDS", "20"))  # with --slow
SEEDS = [*range(2), *map(slow, range(2, N_SEEDS))]
ODD_NUMBERS = [-1, 0, 1, 2, 7, 255, 256, 2**31 - 1, 2**31, 2**32 - 1]
ODD_NUMBERS += [2**62, -(2**62), 10**30]
ODD_VALUES = [
    *ODD_NUMBERS, None, True, "", "nan", [], {}, 0.5, 1e308, [[]], {"dict": []},
    {"tuple": [1]}, {"array": 0}, {"scalar": 1}, {"objects": [[1, 2], [3]]},
    {"float": "nan"}, {"loss": ["PinballLoss", {"quantile": 0.5}, False]},
    {"estimator": ["EraForestRegressor", {"dict": []}, {"dict": []}]},
    {"random": {"dict": [["bit_generator", "MT19937"]]}},
]  # fmt: skip
ODD_DTYPES = ["u1", "i2", "u4", "u8", "f4", "f8", "U3", "M8[D]", "?", ">f8", "c16"]


@cache
def models():
    """Fitted estimators, and rows that all of them predict."""
    rng = np.random.default_rng(0)
    X, y, _, eras = make_data()
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    small = {"max_iter": 3, "max_leaf_nodes": 8, "categorical_features": [0, 3]}
    large = {"max_iter": 2, "max_leaf_nodes": 200, "min_samples_leaf": 1}
    X[:, 3] = rng.integers(0, 6, len(X))
    slope = np.nan_to_num(X[:, 1])  # what a linear member is best at
    fitted = [
        ours(**small, era_effects="intercept").fit(X, y, eras=eras),
        ours(**large).fit(X, y, eras=eras),
        ours("multiclass", **small).fit(X, labels, eras=eras),
        ours("binary", **large).fit(X, labels > 0, eras=eras),
        ensemble.EraForestClassifier(n_estimators=2).fit(X, labels, eras=eras),
        ensemble.EraForestRegressor(2, random_state=np.random.RandomState(0)).fit(X, y),
        RuleEnsembleClassifier(n_estimators=3).fit(X, labels, eras=eras),
        EraSearchCV(ours(**small), {"max_leaf_nodes": [4]}).fit(X, y, eras=eras),
        AutoEraRegressor(
            ours(**small), cv=EraWalkForwardSplit(2, gap=1),
            members=[("linear", LinearRegressor("squared_error", [0, 3]))],
        ).fit(X, slope, eras=eras),
        AutoEraClassifier(
            ours("multiclass", **small),
            members=[("linear", LinearClassifier("log_loss", [0, 3]))],
        ).fit(X, np.digitize(slope, [-0.5, 0.5]), eras=eras),
    ]  # fmt: skip
    assert all("linear" in model.members_ for model in fitted[-2:])
    options = {"members": ["leaves_4"], "cv": 2, "encode_categories": True}
    encoded = AutoEraRegressor(ours(**small), **options)
    fitted.append(encoded.fit(X, slope + X[:, 3], eras=eras))
    assert encoded.encoder_ is not None
    last = preprocessing.EraTargetTransformer(level="last")
    last = preprocessing.EraTargetRegressor(ours(**small), last).fit(X, y, eras=eras)
    ranks = preprocessing.EraRankTransformer(unseen="train").fit(X, eras=eras)
    fitted += [last, ranks]
    return fitted, X


def nodes_of(document):
    """The places of a JSON document, each as what holds it and the key."""
    found, waiting = [], [document]
    while waiting:
        holder = waiting.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def forge_document(document, rng):
    places = nodes_of(document)
    holder, key = places[rng.integers(len(places))]
    how = rng.integers(4)
    if how == 0:
        del holder[key]
    elif how == 1:
        holder[key] = deepcopy(ODD_VALUES[rng.integers(len(ODD_VALUES))])
    elif how == 2:
        other, place = places[rng.integers(len(places))]
        holder[key] = deepcopy(other[place])
    elif isinstance(holder, list):  # an attribute, of another class, or again
        name = ["_preprocessor", "_loss", "estimators_", "transform"][rng.integers(4)]
        value = deepcopy(ODD_VALUES[rng.integers(len(ODD_VALUES))])
        holder.append([name, value] if rng.random() < 0.5 else deepcopy(holder[key]))


def forge_array(arrays, rng):
    number = list(arrays)[rng.integers(len(arrays))]
    array = arrays[number]
    how = rng.integers(7)
    if how < 3 and array.size:
        names = array.dtype.names
        target = array if names is None else array[names[rng.integers(len(names))]]
        value = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS) - 1)]
        at = np.unravel_index(rng.integers(target.size), target.shape)
        with np.errstate(all="ignore"):
            target[at] = np.array(value).astype(target.dtype)
    elif how == 3 and array.dtype.names is None:
        dtype = ODD_DTYPES[rng.integers(len(ODD_DTYPES))]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of complex numbers made real
            arrays[number] = array.astype("f8", copy=True).astype(dtype)
    elif how == 4 and array.ndim:
        arrays[number] = array[: rng.integers(len(array) + 1)]
    elif how == 5 and array.ndim:
        arrays[number] = np.concatenate([array, array])
    elif how == 6:
        arrays[number] = np.asfortranarray(array.T)


def predict_all(model, X):
    """Predictions of rows of all types, few and many, by all methods."""
    outcomes = []
    # An average may also refuse a column that is not of its member's kind, and NumPy
    # statistics of another number of columns.
    numeric = ["members_", "transform", "regressor_"]
    is_array = any(hasattr(model, name) for name in numeric)
    # Python's own, of a forged file: text in place of numbers, no category, one class.
    errors = (TypeError, IndexError, *[ValueError] * is_array)
    predict = "transform" if hasattr(model, "transform") else "predict"
    for rows in (X, X[:1], X.astype(np.int8), np.asfortranarray(X), np.tile(X, (9, 1))):
        for name in [predict, *["predict_proba"] * is_classifier(model)]:
            try:
                outcomes.append(getattr(model, name)(rows))
            except errors as error:
                outcomes.append(str(error))
    return outcomes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_forged_files(seed, tmp_path):
    rng = np.random.default_rng(seed)
    fitted, X = models()
    path, n_refused = tmp_path / "model.era", 0
    for _ in range(N_CASES):
        save_model(fitted[rng.integers(len(fitted))], path)
        forgery = Forgery(path)
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.5:
                forge_array(forgery.arrays, rng)
            elif nodes_of(forgery.documents[MODEL]):
                forge_document(forgery.documents[MODEL], rng)
        forgery.write(path)
        try:
            model, _ = load_model(path)
        except ModelFileError:
            n_refused += 1
            continue
        predict_all(model, X)
    assert 0 < n_refused < N_CASES


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS[::8])
def test_damaged_files(seed, tmp_path):
    """A damaged byte, or an end that is missing, never changes predictions."""
    rng = np.random.default_rng(seed)
    fitted, X = models()
    path = tmp_path / "model.era"
    for model in fitted:
        save_model(model, path)
        whole, expected = path.read_bytes(), predict_all(model, X)
        for _ in range(N_CASES // len(fitted)):
            content = bytearray(whole)
            if rng.random() < 0.2:
                del content[rng.integers(len(content)) :]
            for _ in range(rng.integers(1, 4)):
                if content:
                    content[rng.integers(len(content))] = rng.integers(256)
            path.write_bytes(content)
            try:
                loaded, _ = load_model(path)
            except ModelFileError:
                continue
            for value, other in zip(predict_all(loaded, X), expected, strict=True):
                np.testing.assert_array_equal(value, other)
