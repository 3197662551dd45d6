"""Names that are gone: errors that give the new ones."""

import importlib

import pytest

from sklearn_era._warnings import renamed
from sklearn_era.auto import AutoEraRegressor
from sklearn_era.model_selection import EraSearchCV, EraWalkForwardSplit


@pytest.mark.parametrize(("module", "old", "new"), [
    ("criteria", "HeldOut", "Era or a CustomCriterion"),
    ("metrics", "era_score", r"era_scores\(\.\.\.\)\.mean\(\)"),
    ("metrics", "aggregate_era_scores", r"\.aggregate\(\.\.\.\)"),
    ("datasets", "make_liao_regression", "experiments/_paper_data.py of the rep"),
    ("environments", "within_era_correlation", r"numpy\.corrcoef"),
    ("environments", "kmeans_partition", r"make_pipeline\(Sta.*KMeans"),
    ("ensemble", "AutoEraRegressor", r"sklearn_era\.auto\.AutoEraRegressor"),
    ("numerai", "train", "the command sklearn-era numerai train"),
    ("model_selection", "best_worst_era", "rule='best', choose_by='worst'"),
])  # fmt: skip
def test_old_names_give_the_new_ones(module, old, new):
    name = f"sklearn_era.{module}"
    message = rf"^{name}\.{old} is gone: use .*{new}"
    with pytest.raises(ImportError, match=message):
        exec(f"from {name} import {old}", {})
    with pytest.raises(ImportError, match=message):
        getattr(importlib.import_module(name), old)
    # Other names raise as Python does.
    assert not hasattr(importlib.import_module(name), "never_there")
    with pytest.raises(AttributeError, match=r"^module 'a\.b' has no attribute 'x'$"):
        renamed("a.b", {"old": "new"})("x")


@pytest.mark.parametrize(("make", "old", "new"), [
    (EraWalkForwardSplit, "purge", "gap"),
    (EraWalkForwardSplit, "train_size", "max_train_size"),
    (EraSearchCV, "n_averaged", "AutoEraRegressor"),
    (AutoEraRegressor, "n_averaged", "members"),
])  # fmt: skip
def test_old_arguments_give_the_new_ones(make, old, new):
    with pytest.raises(TypeError, match=f"^{old} is no parameter of .*: use .*{new}"):
        make(**{old: 2})


@pytest.mark.parametrize("make", [AutoEraRegressor, lambda: EraSearchCV(None, {})])
def test_eras_by_position_are_refused(make):
    with pytest.raises(TypeError, match=r"pass labels by name, as fit\(X, y, eras="):
        make().fit([[0]], [0], [1])
