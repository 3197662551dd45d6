"""Eras where none are given: blocks of time, clusters, subsets without correlation.

Each function returns a label a row, from 0, ready for ``fit(X, y, eras=labels)``.
"""

from sklearn_era.environments._decorrelated import (
    decorrelated_partition,
    within_era_correlation,
)
from sklearn_era.environments._kmeans import kmeans_partition
from sklearn_era.environments._time_blocks import time_blocks

__all__ = [
    "decorrelated_partition",
    "kmeans_partition",
    "time_blocks",
    "within_era_correlation",
]
