"""Eras where none are given: blocks of time, and clusters.

Each function returns a label a row, from 0, ready for ``fit(X, y, eras=labels)``.
"""

from typing import TYPE_CHECKING

from sklearn_era._renamed import renamed
from sklearn_era.environments._kmeans import kmeans_partition
from sklearn_era.environments._time_blocks import time_blocks

__all__ = ["kmeans_partition", "time_blocks"]

if not TYPE_CHECKING:
    _MOVED = "experiments/_decorrelated.py of the repository"
    __getattr__ = renamed(
        __name__,
        {"decorrelated_partition": _MOVED, "within_era_correlation": _MOVED},
    )
