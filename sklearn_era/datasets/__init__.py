"""Generators of data sets with eras, for examples, tests and benchmarks."""

from sklearn_era.datasets._numerai_like import make_numerai_like
from sklearn_era.datasets._shortcut_classification import make_shortcut_classification
from sklearn_era.datasets._synthetic_memorization import make_synthetic_memorization

__all__ = [
    "make_numerai_like",
    "make_shortcut_classification",
    "make_synthetic_memorization",
]
