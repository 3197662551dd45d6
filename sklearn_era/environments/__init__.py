"""Eras where none are given: blocks of time.

`time_blocks` returns a label a row, from 0, ready for ``fit(X, y, eras=labels)``.
"""

from typing import TYPE_CHECKING

from sklearn_era._warnings import renamed
from sklearn_era.environments._time_blocks import time_blocks

__all__ = ["time_blocks"]

if not TYPE_CHECKING:
    _MOVED = "experiments/_decorrelated.py of the repository"
    _KMEANS = (
        "sklearn.pipeline.make_pipeline(StandardScaler(), KMeans(n_eras))"
        ".fit_predict(X)"
    )
    _OLD = dict.fromkeys(["decorrelated_partition", "within_era_correlation"], _MOVED)
    __getattr__ = renamed(__name__, _OLD | {"kmeans_partition": _KMEANS})
