"""Names that are gone: errors that give the new ones."""

import importlib

import pytest

from sklearn_era._renamed import renamed


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("metrics", "era_score", r"era_scores\(\.\.\.\)\.mean\(\)"),
        ("metrics", "aggregate_era_scores", r"\.aggregate\(\.\.\.\)"),
        ("datasets", "make_liao_regression", "experiments/_paper_data.py of the rep"),
        ("environments", "decorrelated_partition", "experiments/_decorrelated.py"),
        ("numerai", "train", "the command sklearn-era numerai train"),
    ],
)
def test_old_names_give_the_new_ones(module, old, new):
    name = f"sklearn_era.{module}"
    message = rf"^{name}\.{old} is gone: use .*{new}"
    with pytest.raises(ImportError, match=message):
        exec(f"from {name} import {old}", {})
    with pytest.raises(ImportError, match=message):
        getattr(importlib.import_module(name), old)
    assert not hasattr(importlib.import_module(name), "never_there")


def test_other_names_raise_as_python_does():
    with pytest.raises(
        AttributeError, match=r"^module 'a\.b' has no attribute 'other'$"
    ):
        renamed("a.b", {"old": "new"})("other")
