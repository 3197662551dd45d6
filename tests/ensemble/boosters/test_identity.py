"""With the gain, a fit is scikit-learn's bit for bit, by scikit-learn's code."""

import platform
import shutil
import subprocess

import pytest

from helpers import estimators
from helpers.data import make_data
from helpers.grids import on_grid
from helpers.trees import assert_same_model
from sklearn_era.ensemble._binning import integer_bins
from sklearn_era.ensemble._splitting import splitter as era_splitting


def pair(target: str, **params):
    """Our estimator and scikit-learn's, with the same parameters."""
    return estimators.ours(target, **params), estimators.stock(target, **params)


CONFIGURATIONS = [
    ("real", {}), ("real", {"loss": "absolute_error"}),
    ("real", {"loss": "quantile", "quantile": 0.8}), ("count", {"loss": "poisson"}),
    ("positive", {"loss": "gamma"}), ("binary", {}), ("multiclass", {}),
    ("real", {"categorical_features": [0]}),
    ("multiclass", {"categorical_features": [0]}),
    ("real", {"monotonic_cst": [0, 1, 0, -1, 0]}),
    ("binary", {"monotonic_cst": [0, 1, 0, -1, 0], "categorical_features": [0]}),
    ("real", {"interaction_cst": [(0, 1), (1, 2, 4)]}),
    ("real", {"interaction_cst": "no_interactions", "max_features": 0.5}),
    ("binary", {"max_features": 0.3, "max_depth": 4}),
    ("real", {"l2_regularization": 5.0, "max_bins": 4, "max_leaf_nodes": None}),
    ("binary", {"class_weight": "balanced"}),
    ("multiclass", {"class_weight": {0: 1, 1: 3, 2: 0.5}}),
    ("real", {"early_stopping": True}),
    ("multiclass", {"early_stopping": True, "validation_fraction": 0.3}),
    ("real", {"early_stopping": True, "scoring": "neg_mean_absolute_error"}),
    ("binary", {"early_stopping": True, "scoring": "roc_auc", "n_iter_no_change": 2}),
    ("binary", {"early_stopping": True, "scoring": None}),
    ("real", {"early_stopping": True, "validation_fraction": None}),
    ("real", {"max_bins": 255}),
]  # fmt: skip


@on_grid("configuration with_more", CONFIGURATIONS, [False, True], every=6)
def test_gain_is_scikit_learn(configuration, with_more):
    target, params = configuration
    X, y, weights, eras = make_data(target)
    ours, theirs = pair(target, **params)
    weights, eras = (weights, eras) if with_more else (None, None)
    if with_more:
        # Whole eras would be held out, and not the rows that scikit-learn holds out.
        ours.set_params(validation_eras=None)
    ours.fit(X, y, weights, eras=eras)
    assert_same_model(ours, theirs.fit(X, y, weights), X)


@on_grid("target scoring", ["real", "binary", "multiclass"], ["loss", None], every=2)
def test_gain_with_validation_data_is_scikit_learn(target, scoring):
    X, y, weights, eras = make_data(target)
    validation = dict(zip(("X_val", "y_val", "sample_weight_val", "eras_val"),
                          make_data(target, 150, seed=1), strict=True))  # fmt: skip
    ours, theirs = pair(target, early_stopping=True, scoring=scoring)
    ours.fit(X, y, weights, eras=eras, **validation)
    del validation["eras_val"]
    assert_same_model(ours, theirs.fit(X, y, weights, **validation), X)


@on_grid("target early_stopping", ["real", "multiclass"], [False, True], every=2)
def test_gain_with_warm_start_is_scikit_learn(target, early_stopping):
    X, y, weights, eras = make_data(target)
    params = {"warm_start": True, "max_features": 0.5}
    ours, theirs = pair(target, **params, early_stopping=early_stopping)
    ours.set_params(validation_eras=None)
    for max_iter in (2, 5):
        ours.set_params(max_iter=max_iter).fit(X, y, weights, eras=eras)
        theirs.set_params(max_iter=max_iter).fit(X, y, weights)
        assert_same_model(ours, theirs, X)


# Two OpenMP runtimes in a process spin while the other one works; that there is one of
# them is seen in test_threads.py.


@pytest.mark.skipif(platform.system() != "Linux", reason="ELF symbols")
@pytest.mark.skipif(shutil.which("nm") is None, reason="needs binutils")
@pytest.mark.parametrize("extension", [era_splitting, integer_bins])
def test_extension_needs_no_openmp_runtime(extension):
    command = ["nm", "-D", "--undefined-only", extension.__file__]
    printed = subprocess.check_output(command, text=True)
    symbols = [line.split()[-1] for line in printed.splitlines()]
    if any(symbol.startswith("__kmpc") for symbol in symbols):
        pytest.skip("built with clang, whose runtime is linked as usual")
    assert symbols
    assert not [s for s in symbols if s.startswith(("GOMP_", "omp_"))]
    assert "gomp" not in subprocess.check_output(["ldd", extension.__file__], text=True)
